// The programs of others that jobs' environments are made with.
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/machine/machine.h"
#include "base/process/command.h"
#include "platform/client/doctor/checks.h"

namespace tutti::client {
namespace {

constexpr absl::Duration kPatienceWithTools = absl::Seconds(20);

using Variables = std::map<std::string, std::string>;

// What `program --version` says, and where it is; not well where it does not start.
Check Version(const char* name, const std::string& program, const Variables& variables) {
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

}  // namespace

Check CheckUv(const DoctorSubject& subject) {
  const auto uv = base::FindProgram("uv", subject.variables);
  if (uv.ok()) return Version("uv", *uv, subject.variables);
  const std::filesystem::path own = subject.home / "environments" / "uv" / "bin" / "uv";
  if (::access(own.c_str(), X_OK) == 0) return Version("uv", own, subject.variables);
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
