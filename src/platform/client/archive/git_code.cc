#include "platform/client/archive/git_code.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/status.h"
#include "spec/environment/install_failure.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostOfAnAnswer = 64 << 10;  // bytes

// Returns what a call of git in `folder` prints; InvalidArgument with git's words if it fails.
absl::StatusOr<std::string> Git(const fs::path& folder, std::vector<std::string> arguments,
                                base::Deadline deadline) {
  arguments.insert(arguments.begin(), "git");
  base::ChildOptions options{.arguments = std::move(arguments),
                             .environment = base::CurrentEnvironment(),
                             .directory = folder};
  options.environment["GIT_TERMINAL_PROMPT"] = "0";
  options.environment["GIT_OPTIONAL_LOCKS"] = "0";
  options.environment["GIT_ALLOW_PROTOCOL"] = "https:http:ssh:git:file";
  options.die_with_parent = true;
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult result,
                         base::RunCommand(std::move(options), "", deadline, kMostOfAnAnswer));
  if (result.exit.ok()) return std::string(absl::StripAsciiWhitespace(result.out));
  return absl::InvalidArgumentError(
      absl::StripAsciiWhitespace(absl::StrCat(result.out, result.err)));
}

// Makes `folder` a repository with the revision checked out.
absl::Status Checkout(const spec::GitCode& code, const fs::path& folder, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(Git(folder, {"init", "--quiet"}, deadline).status());
  const std::string revision = code.revision.empty() ? "HEAD" : code.revision;
  std::string found = "FETCH_HEAD";
  absl::Status fetched =
      Git(folder, {"fetch", "--quiet", "--depth", "1", "--", code.url, revision}, deadline)
          .status();
  if (absl::IsInvalidArgument(fetched) &&
      !code.revision.empty()) {  // a commit, which not every server hands out alone
    fetched =
        Git(folder,
            {"fetch", "--quiet", "--tags", "--", code.url, "+refs/heads/*:refs/remotes/origin/*"},
            deadline)
            .status();
    found = revision;
  }
  if (fetched.ok()) {
    fetched = Git(folder, {"checkout", "--quiet", "--detach", found, "--"}, deadline).status();
  }
  return base::Annotate(fetched,
                        absl::StrCat("code: git cannot fetch ", revision, " of ", code.url));
}

// Returns an address without the name and password that may stand before its host.
std::string WithoutPassword(const std::string& address) {
  return absl::StrReplaceAll(spec::WithoutPasswords(address), {{"://****@", "://"}});
}

}  // namespace

absl::StatusOr<fs::path> FetchGitCode(const spec::GitCode& code, const fs::path& folder,
                                      base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(Checkout(code, folder, deadline));
  // Real names are compared, since a link in the repository must not lead to other folders of this
  // machine.
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path place = fs::canonical(root / code.folder, error);
  const fs::path inside = place.lexically_relative(root);
  if (!error && fs::is_directory(place, error) && *inside.begin() != "..") return place;
  return absl::InvalidArgumentError(
      absl::StrCat("code: ", code.url, " has no folder \"", code.folder, "\""));
}

std::map<std::string, std::string> GitOrigin(const fs::path& folder, base::Deadline deadline) {
  std::map<std::string, std::string> origin;
  const std::string commit = Git(folder, {"rev-parse", "--verify", "HEAD"}, deadline).value_or("");
  if (commit.empty()) return origin;
  origin["git_commit"] = commit;
  const auto add = [&](const char* name, const absl::StatusOr<std::string>& value) {
    if (!value.value_or("").empty()) origin[name] = *value;
  };
  add("git_branch", Git(folder, {"symbolic-ref", "--quiet", "--short", "HEAD"}, deadline));
  add("git_repository",
      WithoutPassword(
          Git(folder, {"config", "--get", "remote.origin.url"}, deadline).value_or("")));
  const absl::StatusOr<std::string> changed =
      Git(folder, {"status", "--porcelain", "--", "."}, deadline);
  if (!changed.ok()) origin["git_dirty"] = "unknown";
  if (!changed.value_or("").empty()) origin["git_dirty"] = "true";
  return origin;
}

}  // namespace tutti::client
