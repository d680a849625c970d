#include "platform/client/archive/git_code.h"

#include <fcntl.h>
#include <signal.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/status.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// One call of git in `folder`.
absl::Status Git(const fs::path& folder, std::vector<std::string> arguments,
                 base::Deadline deadline) {
  const fs::path said = folder.parent_path() / "git.log";
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log, base::Open(said, O_WRONLY | O_CREAT | O_TRUNC));
  arguments.insert(arguments.begin(), "git");
  base::ChildOptions options{.arguments = std::move(arguments),
                             .environment = base::CurrentEnvironment(),
                             .directory = folder};
  options.environment["GIT_TERMINAL_PROMPT"] = "0";
  options.environment["GIT_ALLOW_PROTOCOL"] = "https:http:ssh:git:file";
  options.stdout_fd = options.stderr_fd = log.get();
  options.die_with_parent = true;
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess child, base::ChildProcess::Start(options));
  const auto ended = child.Wait(deadline);
  if (!ended.ok()) {
    child.SignalGroup(SIGKILL).IgnoreError();
    return ended.status();
  }
  if (ended->ok()) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(said, 1 << 20));
  return absl::InvalidArgumentError(absl::StripAsciiWhitespace(text));
}

// Makes `folder` a repository with the revision checked out.
absl::Status Checkout(const spec::GitCode& code, const fs::path& folder, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(Git(folder, {"init", "--quiet"}, deadline));
  const std::string revision = code.revision.empty() ? "HEAD" : code.revision;
  std::string found = "FETCH_HEAD";
  absl::Status fetched =
      Git(folder, {"fetch", "--quiet", "--depth", "1", "--", code.url, revision}, deadline);
  if (absl::IsInvalidArgument(fetched) &&
      !code.revision.empty()) {  // a commit, which not every server hands out alone
    fetched =
        Git(folder,
            {"fetch", "--quiet", "--tags", "--", code.url, "+refs/heads/*:refs/remotes/origin/*"},
            deadline);
    found = revision;
  }
  if (fetched.ok()) {
    fetched = Git(folder, {"checkout", "--quiet", "--detach", found, "--"}, deadline);
  }
  return base::Annotate(fetched,
                        absl::StrCat("code: git cannot fetch ", revision, " of ", code.url));
}

}  // namespace

absl::StatusOr<fs::path> FetchGitCode(const spec::GitCode& code, const fs::path& folder,
                                      base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(Checkout(code, folder, deadline));
  // By its real name: a link in the repository must not lead to other folders of this machine.
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path place = fs::canonical(root / code.folder, error);
  const fs::path inside = place.lexically_relative(root);
  if (!error && fs::is_directory(place, error) && *inside.begin() != "..") return place;
  return absl::InvalidArgumentError(
      absl::StrCat("code: ", code.url, " has no folder \"", code.folder, "\""));
}

}  // namespace tutti::client
