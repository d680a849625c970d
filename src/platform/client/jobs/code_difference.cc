#include "platform/client/jobs/code_difference.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/process/command.h"
#include "base/status.h"

namespace tutti::client {
namespace {

constexpr size_t kMostOfAPatch = 64 << 20;

// Returns what git prints of the two folders, in its own way whatever its user has configured.
absl::StatusOr<std::string> GitDiff(const std::filesystem::path& folder,
                                    const std::vector<std::string>& form, const std::string& before,
                                    const std::string& now, base::Deadline deadline) {
  base::ChildOptions options{.environment = base::CurrentEnvironment(), .directory = folder};
  options.arguments = {"git",           "--no-pager",    "diff",         "--no-index",
                       "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color",
                       "--src-prefix=", "--dst-prefix="};
  options.arguments.insert(options.arguments.end(), form.begin(), form.end());
  options.arguments.insert(options.arguments.end(), {"--", before, now});
  std::erase_if(options.environment,
                [](const auto& variable) { return absl::StartsWith(variable.first, "GIT_"); });
  options.die_with_parent = true;
  const auto result = base::RunCommand(std::move(options), "", deadline, kMostOfAPatch);
  if (absl::IsNotFound(result.status())) {
    return absl::FailedPreconditionError("what differs in the code git would say: install git");
  }
  TUTTI_RETURN_IF_ERROR(result.status());
  const bool told = result->exit.signal == 0 && result->exit.code <= 1;  // 1: they differ
  if (!told) return absl::InternalError(absl::StrCat("git diff: ", result->err));
  return result->out;
}

// "3 TAB 1 TAB NUL BEFORE/train.py NUL NOW/train.py NUL" for each file; of a binary one "-" for the
// numbers, of one that is not there /dev/null.
std::vector<std::string> FilesOfNumstat(absl::string_view text, const std::string& before,
                                        const std::string& now) {
  std::vector<std::string> files;
  const std::vector<std::string> fields = absl::StrSplit(text, '\0');
  for (size_t i = 0; i + 2 < fields.size(); i += 3) {
    const std::vector<std::string> counts = absl::StrSplit(fields[i], '\t');
    absl::string_view name = fields[i + 2] == "/dev/null" ? fields[i + 1] : fields[i + 2];
    if (!absl::ConsumePrefix(&name, absl::StrCat(now, "/"))) {
      absl::ConsumePrefix(&name, absl::StrCat(before, "/"));
    }
    const bool is_text = counts.size() > 1 && counts[0] != "-";
    files.push_back(is_text ? absl::StrCat(name, " +", counts[0], " -", counts[1])
                            : absl::StrCat(name, " (binary)"));
  }
  return files;
}

}  // namespace

absl::StatusOr<CodeDifference> CompareCode(const std::filesystem::path& folder,
                                           const std::string& before, const std::string& now,
                                           base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(const std::string counts,
                         GitDiff(folder, {"--numstat", "-z"}, before, now, deadline));
  TUTTI_ASSIGN_OR_RETURN(std::string patch,
                         GitDiff(folder, {"--patch-with-stat"}, before, now, deadline));
  return CodeDifference{FilesOfNumstat(counts, before, now), std::move(patch)};
}

}  // namespace tutti::client
