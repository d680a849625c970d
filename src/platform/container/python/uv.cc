#include "platform/container/python/uv.h"

#include <unistd.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/status.h"
#include "spec/environment/install_failure.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr char kUv[] = "uv==0.9.*";
constexpr size_t kMostOfPip = 1 << 20;

bool MayRun(const fs::path& program) { return ::access(program.c_str(), X_OK) == 0; }

// This machine's variables, but for those that lead a Python to other packages than its own.
std::map<std::string, std::string> PlainVariables() {
  std::map<std::string, std::string> variables = base::CurrentEnvironment();
  for (const char* name : {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX"}) {
    variables.erase(name);
  }
  return variables;
}

// Installs uv by pip, and returns what pip printed.
absl::StatusOr<std::string> InstallUv(const fs::path& target, const fs::path& log_file,
                                      const std::atomic<bool>& cancelled) {
  const base::ChildOptions options{
      .arguments = {"python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--target", target.string(), kUv},
      .environment = PlainVariables()};
  TUTTI_ASSIGN_OR_RETURN(
      const base::CommandResult ended,
      base::RunCommand(options, "", base::Deadline::After(absl::InfiniteDuration()), kMostOfPip,
                       &cancelled));
  const std::string said = absl::StrCat(ended.out, ended.err);
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(log_file, said));
  return said;
}

std::string Variable(const std::map<std::string, std::string>& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

// pyenv's own programs stand for one version only; uv does not look behind them.
void AddPyenv(std::map<std::string, std::string>& variables) {
  fs::path root = Variable(variables, "PYENV_ROOT");
  if (root.empty()) root = fs::path(Variable(variables, "HOME")) / ".pyenv";
  std::set<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator entry(root / "versions", error), end; !error && entry != end;
       entry.increment(error)) {
    folders.insert((entry->path() / "bin").string());
  }
  for (const std::string& folder : folders) absl::StrAppend(&variables["PATH"], ":", folder);
}

}  // namespace

std::map<std::string, std::string> UvVariables(const fs::path& folder) {
  std::map<std::string, std::string> variables = PlainVariables();
  variables["UV_CACHE_DIR"] = (folder / "cache").string();
  variables.emplace("UV_PYTHON_INSTALL_DIR", (folder / "python").string());
  variables.emplace("UV_PYTHON_DOWNLOADS", "manual");
  variables["UV_NO_PROGRESS"] = "1";
  variables["NO_COLOR"] = "1";
  variables.emplace("UV_NATIVE_TLS", "1");  // a site's own certificates
  constexpr std::pair<const char*, const char*> kOfPip[] = {{"PIP_INDEX_URL", "UV_DEFAULT_INDEX"},
                                                            {"PIP_EXTRA_INDEX_URL", "UV_INDEX"},
                                                            {"PIP_FIND_LINKS", "UV_FIND_LINKS"}};
  for (const auto& [pip, uv] : kOfPip) {
    const std::string value = Variable(variables, pip);
    if (!value.empty()) variables.emplace(uv, value);
  }
  AddPyenv(variables);
  return variables;
}

absl::StatusOr<std::string> FindUv(const fs::path& folder, const std::atomic<bool>& cancelled) {
  auto found = base::FindProgram("uv", base::CurrentEnvironment());
  if (found.ok()) return found;
  const fs::path own = folder / "uv", program = own / "bin/uv";
  if (MayRun(program)) return program.string();
  const fs::path partial = folder / absl::StrCat("uv.", base::RandomHex(4));
  const auto said = InstallUv(partial, folder / "uv.log", cancelled);
  std::error_code error;
  if (said.ok() && MayRun(partial / "bin/uv")) {
    fs::rename(partial, own, error);  // another may have been faster
  }
  base::RemoveTree(partial).IgnoreError();
  if (absl::IsCancelled(said.status())) return said.status();
  if (MayRun(program)) return program.string();
  const std::string words = said.ok() ? *said : std::string(said.status().message());
  if (const std::string why = spec::WhyIndexIsAway({}, words); !why.empty()) {
    return absl::UnavailableError(
        absl::StrCat("no way to the package index, which has uv (", why, ")"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "uv, which makes environments, is not on this machine and could not be installed: ",
      spec::InOneLine(words), "; install it (pip install uv), or use the environment \"host\""));
}

}  // namespace tutti::container
