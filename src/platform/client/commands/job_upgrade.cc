#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/script/script_job.h"
#include "spec/file/job_file.h"
#include "spec/file/preview_job.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

fs::path FolderOf(const std::string& file) {
  return fs::absolute(file).lexically_normal().parent_path();
}

// Returns what is still wrong with the job, by the lines of the new text.
absl::Status CheckAgain(const Context& context, const JobUpgradeOptions& options,
                        const std::string& text) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site,
                         spec::ReadSite(context.home, spec::AnyContainerLeave()));
  const std::string& name = options.save.empty() ? options.file : options.save;
  return spec::ReadJobFile(text, name, FolderOf(options.file), site).status();
}

// "old.yml:4: what" is of line 4 of what is shown, and not of the old file, where that is not
// saved.
std::string InNewText(const JobUpgradeOptions& options, absl::string_view line) {
  absl::string_view rest = line;
  if (!options.save.empty() || !absl::ConsumePrefix(&rest, absl::StrCat(options.file, ":"))) {
    return std::string(line);
  }
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0) return absl::StrCat("the new text:", rest);
  return absl::StrCat("line ", rest.substr(0, digits), " of the new text", rest.substr(digits));
}

// The old file may be written over where it is named.
absl::Status CheckSave(const JobUpgradeOptions& options, const std::string& text) {
  std::error_code error;
  if (options.save.empty() || fs::equivalent(options.save, options.file, error)) {
    return absl::OkStatus();
  }
  if (FolderOf(options.save) == FolderOf(options.file)) return CheckCanSave(text, options.save);
  return absl::InvalidArgumentError(
      absl::StrCat("--save ", options.save, ": the paths in it count from the folder ",
                   FolderOf(options.file).string(), ": name a file there"));
}

}  // namespace

absl::StatusOr<ExitCode> JobUpgrade(Context& context, const JobUpgradeOptions& options) {
  const auto text = spec::ReadFromDisk(options.file);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  const auto upgraded = spec::UpgradeJob(*text, options.file);
  if (absl::IsFailedPrecondition(upgraded.status())) {
    return absl::InvalidArgumentError(upgraded.status().message());
  }
  TUTTI_RETURN_IF_ERROR(upgraded.status());
  TUTTI_RETURN_IF_ERROR(CheckSave(options, upgraded->text));
  for (const std::string& note : upgraded->notes) {
    context.err << "not converted: " << note << std::endl;
  }
  const absl::Status left = CheckAgain(context, options, upgraded->text);
  for (const absl::string_view line : absl::StrSplit(left.message(), '\n', absl::SkipEmpty())) {
    context.err << "still to be done: " << InNewText(options, line) << std::endl;
  }
  if (options.save.empty()) {
    context.out << upgraded->text;
    return ExitCode::kOk;
  }
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(options.save, upgraded->text));
  context.err << options.save << " is of today's schema\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
