#include "platform/launch/python_environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/child_process.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/waiting.h"
#include "platform/container/uv.h"
#include "spec/install_failure.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kForm = 1;  // of what MakeEnvironment makes; another number makes all anew
constexpr uint64_t kLargestLog = 1 << 20;

absl::Status Cancelled() { return absl::CancelledError("stopped while its environment was made"); }

std::string Variable(const std::map<std::string, std::string>& variables, const char* name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

// Runs programs for one environment; what they say goes to its log.
class Maker {
 public:
  Maker(const spec::Environment& environment, const fs::path& environments, std::string key,
        const std::atomic<bool>& cancelled)
      : environment_(environment),
        environments_(environments),
        folder_(environments / key),
        log_(environments / absl::StrCat(key, ".log")),
        cancelled_(cancelled) {}

  absl::StatusOr<MadeEnvironment> Make() {
    TUTTI_ASSIGN_OR_RETURN(uv_, container::FindUv(environments_, cancelled_));
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(folder_));
    TUTTI_RETURN_IF_ERROR(MakeVenv());
    TUTTI_RETURN_IF_ERROR(InstallPackages());
    // So that a job's own `pip install` works; an index without them is no reason to fail.
    const absl::Status seeded = Install({"pip", "setuptools<81", "wheel"});
    if (absl::IsCancelled(seeded)) return seeded;
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder_ / "complete", note_));
    return MadeEnvironment{folder_, note_};
  }

 private:
  // OK if it ended with 0; else FailedPrecondition with its words.
  absl::Status Run(const std::vector<std::string>& arguments) {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log,
                           base::Open(log_, O_WRONLY | O_CREAT | O_TRUNC));
    base::ChildOptions options{.arguments = arguments, .environment = Variables()};
    options.stdout_fd = options.stderr_fd = log.get();
    options.die_with_parent = true;
    const auto ended = base::RunToEnd(options, cancelled_);
    if (absl::IsCancelled(ended.status())) return Cancelled();
    TUTTI_RETURN_IF_ERROR(ended.status());
    if (ended->ok()) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const std::string said, base::ReadFile(log_, kLargestLog));
    return absl::FailedPreconditionError(said);
  }

  // The machine's own, with uv told what pip was told of indexes.
  std::map<std::string, std::string> Variables() const {
    std::map<std::string, std::string> variables = base::CurrentEnvironment();
    for (const char* name : {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX"}) {
      variables.erase(name);
    }
    variables["UV_CACHE_DIR"] = (environments_ / "cache").string();
    variables.emplace("UV_PYTHON_DOWNLOADS", "never");  // a site may allow it
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
    return variables;
  }

  absl::Status MakeVenv() {
    const std::vector<std::string> plain = {uv_, "venv", "--python"};
    const auto with = [&](const std::string& python) {
      std::vector<std::string> arguments = plain;
      arguments.push_back(python);
      arguments.push_back(folder_.string());
      return Run(arguments);
    };
    const std::string wanted = environment_.python.empty() ? "3" : environment_.python;
    absl::Status made = with(wanted);
    if (made.ok() || absl::IsCancelled(made)) return made;
    substitute_ = true;
    made = with("3");
    if (!made.ok()) return base::Annotate(made, "no Python on this machine");
    std::error_code error;
    const std::string here = fs::directory_iterator(folder_ / "lib", error)->path().filename();
    note_ = absl::StrCat("Python ", wanted, " is not on this machine; ",
                         absl::StrReplaceAll(here, {{"python", "Python "}}), " is taken");
    return absl::OkStatus();
  }

  absl::Status InstallPackages() {
    if (environment_.packages.empty()) return absl::OkStatus();
    std::vector<std::string> texts;
    for (const spec::Requirement& package : environment_.packages) texts.push_back(package.text);
    absl::Status installed = Install(texts);
    if (absl::IsFailedPrecondition(installed) && substitute_) {
      // Versions that were pinned for another Python may have no build for this one.
      for (std::string& text : texts) text = WithoutPins(text);
      const absl::Status again = Install(texts);
      if (again.ok())
        absl::StrAppend(&note_, ", and versions given by == are the least that is taken");
      if (again.ok() || absl::IsCancelled(again)) return again;
    }
    if (!absl::IsFailedPrecondition(installed)) return installed;
    std::string why = spec::ExplainFailure(environment_, std::string(installed.message()));
    if (!note_.empty()) absl::StrAppend(&why, " (", note_, ")");
    return absl::FailedPreconditionError(why);
  }

  // "a==1.2" -> "a>=1.2", "a==1.2.*" -> "a>=1.2".
  static std::string WithoutPins(absl::string_view requirement) {
    const size_t marker = std::min(requirement.find(';'), requirement.size());
    std::string text = absl::StrReplaceAll(requirement.substr(0, marker), {{"==", ">="}});
    text = absl::StrReplaceAll(text, {{".*", ""}});
    return absl::StrCat(text, requirement.substr(marker));
  }

  absl::Status Install(const std::vector<std::string>& requirements) {
    const fs::path list = folder_ / "requirements.txt";
    TUTTI_RETURN_IF_ERROR(
        base::WriteFileAtomic(list, absl::StrCat(absl::StrJoin(requirements, "\n"), "\n")));
    std::vector<std::string> arguments = {
        uv_, "pip", "install", "--python", (folder_ / "bin/python").string(), "-r", list.string()};
    arguments.insert(arguments.end(), environment_.options.begin(), environment_.options.end());
    return Run(arguments);
  }

  const spec::Environment& environment_;
  const fs::path environments_, folder_, log_;
  const std::atomic<bool>& cancelled_;
  std::string uv_;
  bool substitute_ = false;  // another Python than the one that was asked for
  std::string note_;
};

// Whole, and its Python is still on the machine.
bool IsComplete(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "complete", error) && fs::exists(folder / "bin/python", error);
}

// Of a requirement that is a path: a file of that name may have changed.
std::string StampOf(const std::string& requirement) {
  if (!absl::StartsWith(requirement, "/")) return "";
  std::error_code error;
  if (fs::is_directory(requirement, error)) {
    std::string stamp;
    for (fs::recursive_directory_iterator entry(requirement, error), end; !error && entry != end;
         entry.increment(error)) {
      const auto time = entry->last_write_time(error).time_since_epoch().count();
      absl::StrAppend(&stamp, entry->path().native(), " ", time, "\n");
    }
    return base::Hex(base::Sha256Of(stamp));
  }
  const auto digest = base::Sha256OfFile(requirement);
  return digest.ok() ? base::Hex(*digest) : "";
}

}  // namespace

std::string EnvironmentKey(const spec::Environment& environment) {
  nlohmann::json content = {{"form", kForm},
                            {"python", environment.python},
                            {"options", environment.options},
                            {"packages", nlohmann::json::array()}};
  for (const spec::Requirement& package : environment.packages) {
    content["packages"].push_back({package.text, StampOf(package.text)});
  }
  const std::string text = content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return base::Hex(base::Sha256Of(text)).substr(0, 24);
}

absl::StatusOr<MadeEnvironment> MakeEnvironment(const spec::Environment& environment,
                                                const fs::path& environments,
                                                const std::atomic<bool>& cancelled) {
  const std::string key = EnvironmentKey(environment);
  const fs::path folder = environments / key;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(environments));
  base::UniqueFd lock;
  if (!IsComplete(folder)) {
    auto locked = base::LockFile(environments / absl::StrCat(key, ".lock"), cancelled);
    if (absl::IsCancelled(locked.status())) return Cancelled();
    TUTTI_ASSIGN_OR_RETURN(lock, std::move(locked));
  }
  if (!IsComplete(folder)) return Maker(environment, environments, key, cancelled).Make();
  TUTTI_ASSIGN_OR_RETURN(std::string note, base::ReadFile(folder / "complete", kLargestLog));
  return MadeEnvironment{folder, std::move(note)};
}

}  // namespace tutti::launch
