// Checks the programs of others that jobs' environments are made with.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/machine/machine.h"
#include "base/process/command.h"
#include "platform/client/doctor/checks.h"

namespace tutti::client {
namespace {

constexpr absl::Duration kPatienceWithTools = absl::Seconds(20);
constexpr absl::Duration kPatienceWithFolder = absl::Seconds(2);

// Reports what `program --version` says, and where the program is; fails if it does not start.
Check Version(const char* name, const std::string& program,
              const std::map<std::string, std::string>& variables) {
  base::ChildOptions options;
  options.arguments = {program, "--version"};
  options.environment = variables;
  const auto result = base::RunCommand(options, "", base::Deadline::After(kPatienceWithTools));
  if (result.ok() && result->exit.ok()) {
    return {name, Check::Outcome::kOk,
            absl::StrCat(absl::StripAsciiWhitespace(result->out), " (", program, ")"), ""};
  }
  return {name, Check::Outcome::kWarning,
          absl::StrCat(program, " --version: ",
                       result.ok() ? absl::StrCat("ends with ", result->exit.ToString())
                                   : std::string(result.status().message())),
          absl::StrCat("install ", name, " anew")};
}

// Returns whether that program is there. DeadlineExceeded if its folder does not answer: another
// process looks, which can be ended.
absl::StatusOr<bool> IsThere(const std::filesystem::path& program) {
  base::ChildOptions options;
  options.arguments = {"/bin/sh", "-c", R"(test -x "$0")", program.native()};
  const auto looked = base::RunCommand(options, "", base::Deadline::After(kPatienceWithFolder));
  if (!looked.ok()) return looked.status();
  return looked->exit.ok();
}

}  // namespace

Check CheckUv(const DoctorSubject& subject) {
  const auto uv = base::FindProgram("uv", subject.variables);
  if (uv.ok()) return Version("uv", *uv, subject.variables);
  const std::filesystem::path own = subject.home / "environments" / "uv" / "bin" / "uv";
  const auto own_is_there = IsThere(own);
  if (absl::IsDeadlineExceeded(own_is_there.status())) {
    return {"uv", Check::Outcome::kWarning,
            absl::StrCat("the folder of ", own.native(), " does not answer"),
            "see whether it is on a server that is away"};
  }
  if (own_is_there.ok() && *own_is_there) return Version("uv", own, subject.variables);
  if (base::FindProgram("python3", subject.variables).ok()) {
    return {"uv", Check::Outcome::kOk,
            "not here: the first job with conda or pip packages fetches it by pip", ""};
  }
  return {"uv", Check::Outcome::kWarning,
          "not here, nor python3 to fetch it: jobs with conda or pip packages are refused",
          "apt-get install python3-pip, or pip install uv"};
}

Check CheckPodman(const DoctorSubject& subject) {
  const auto podman = base::FindProgram("podman", subject.variables);
  if (podman.ok()) return Version("podman", *podman, subject.variables);
  return {"podman", Check::Outcome::kWarning,
          "not here: jobs whose environment is an image run only if site.yml has packages for it",
          "apt-get install podman"};
}

}  // namespace tutti::client
