#include "platform/container/uv.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "base/child_process.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/status.h"
#include "base/waiting.h"
#include "spec/install_failure.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr char kUv[] = "uv==0.9.*";
constexpr uint64_t kMostOfPip = 1 << 20;

bool MayRun(const fs::path& program) { return ::access(program.c_str(), X_OK) == 0; }

// What pip said.
absl::StatusOr<std::string> InstallUv(const fs::path& target, const fs::path& log_file,
                                      const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log,
                         base::Open(log_file, O_WRONLY | O_CREAT | O_TRUNC));
  base::ChildOptions options{
      .arguments = {"python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--target", target.string(), kUv},
      .environment = base::CurrentEnvironment()};
  for (const char* name : {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX"}) {
    options.environment.erase(name);
  }
  options.stdout_fd = options.stderr_fd = log.get();
  options.die_with_parent = true;
  TUTTI_RETURN_IF_ERROR(base::RunToEnd(options, cancelled).status());
  return base::ReadFile(log_file, kMostOfPip);
}

}  // namespace

absl::StatusOr<std::string> FindUv(const fs::path& folder, const std::atomic<bool>& cancelled) {
  auto found = base::FindProgram("uv", base::CurrentEnvironment());
  if (found.ok()) return found;
  const fs::path own = folder / "uv", program = own / "bin/uv";
  if (MayRun(program)) return program.string();
  const fs::path partial = folder / absl::StrCat("uv.", base::RandomHex(4));
  const auto said = InstallUv(partial, folder / "uv.log", cancelled);
  if (absl::IsCancelled(said.status())) return said.status();
  std::error_code error;
  if (MayRun(partial / "bin/uv")) fs::rename(partial, own, error);  // another may have been faster
  base::RemoveTree(partial).IgnoreError();
  if (MayRun(program)) return program.string();
  return absl::FailedPreconditionError(absl::StrCat(
      "uv, which makes environments, is not on this machine and could not be installed: ",
      spec::InOneLine(said.ok() ? *said : std::string(said.status().message())),
      "; install it (pip install uv), or use the environment \"host\""));
}

}  // namespace tutti::container
