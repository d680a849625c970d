#include "platform/launch/staging/python_environment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/container/own_package.h"
#include "platform/container/python/python.h"
#include "platform/container/python/uv.h"
#include "platform/launch/staging/pin_dates.h"
#include "platform/launch/staging/torch_builds.h"
#include "platform/mlflow/model_registry.h"
#include "spec/environment/install_failure.h"
#include "spec/environment/python_version.h"
#include "spec/environment/shared_files.h"
#include "spec/site/requirement.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kForm = 1;  // of what MakeEnvironment makes; another number makes all anew
// Packages whose versions of before a Python take minutes to build for it, and mostly fail.
constexpr std::array<const char*, 7> kLongBuilds = {
    "numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "pyarrow", "h5py"};
constexpr char kPackageList[] = "requirements.txt";  // which `tutti environment list` shows
constexpr uint64_t kLargestLog = 1 << 20;
constexpr size_t kLargestEnd = 1 << 19;  // of the two of what was said that explain a failure
constexpr absl::Duration kPatienceWithTorch = absl::Seconds(10);  // with an answer of its index

// The command as a line of the log, without the passwords of addresses.
std::string HeadingOf(const std::vector<std::string>& arguments, const std::string& newest_day) {
  std::string line = "$";
  if (!newest_day.empty()) absl::StrAppend(&line, " UV_EXCLUDE_NEWER=", newest_day);
  for (const std::string& argument : arguments) {
    absl::StrAppend(&line, " ", spec::WithoutPasswords(argument));
  }
  return absl::StrCat(line, "\n");
}

absl::Status IndexIsAway(absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("no way to the package index (", why, ")"));
}

absl::Status Cancelled() { return absl::CancelledError("stopped while its environment was made"); }

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
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(log_, ""));
    TUTTI_ASSIGN_OR_RETURN(uv_, container::FindUv(environments_, cancelled_));
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(folder_));
    TUTTI_RETURN_IF_ERROR(MakeVenv());
    TUTTI_RETURN_IF_ERROR(InstallPackages());
    // So that a job's own `pip install` works; an index without them is no reason to fail.
    TUTTI_ASSIGN_OR_RETURN(const std::string setuptools, Setuptools());
    const absl::Status seeded = Install({"pip", setuptools, "wheel"}, {}, "", "tools.txt");
    if (absl::IsCancelled(seeded)) return seeded;
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder_ / "complete", note_));
    return MadeEnvironment{folder_, note_};
  }

 private:
  // OK if it ended with 0; else Unavailable, with the reason, if the index could not be reached,
  // and FailedPrecondition with its words. The log gets the command and all that it says.
  absl::Status Run(const std::vector<std::string>& arguments, const std::string& newest_day = "") {
    TUTTI_RETURN_IF_ERROR(AppendToLog(HeadingOf(arguments, newest_day)));
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log, base::Open(log_, O_WRONLY | O_APPEND));
    const off_t begin = ::lseek(log.get(), 0, SEEK_END);
    base::ChildOptions options{.arguments = arguments, .environment = Variables()};
    if (!newest_day.empty()) {
      options.environment["UV_EXCLUDE_NEWER"] = absl::StrCat(newest_day, "T23:59:59Z");
    }
    options.stdout_fd = options.stderr_fd = log.get();
    options.die_with_parent = true;
    const auto ended = base::RunToEnd(options, cancelled_);
    TUTTI_ASSIGN_OR_RETURN(const std::string said, WithoutPasswordsSince(begin));
    if (absl::IsCancelled(ended.status())) return Cancelled();
    TUTTI_RETURN_IF_ERROR(ended.status());
    if (ended->ok()) return absl::OkStatus();
    const std::string why = spec::WhyIndexIsAway(environment_, said);
    return why.empty() ? absl::FailedPreconditionError(said) : IndexIsAway(why);
  }

  // uv is told by its option alone which builds of PyTorch are taken.
  std::map<std::string, std::string> Variables() const {
    std::map<std::string, std::string> variables = container::UvVariables(environments_);
    variables.erase("UV_TORCH_BACKEND");
    return variables;
  }

  absl::Status AppendToLog(const std::string& text) const {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log,
                           base::Open(log_, O_WRONLY | O_CREAT | O_APPEND));
    return base::WriteAll(log.get(), text, log_.native());
  }

  // Takes the passwords out of all that the log has since then. Returns its begin, where uv names
  // what it could not build, and its end.
  absl::StatusOr<std::string> WithoutPasswordsSince(off_t begin) const {
    const base::TemporaryDirectory scratch("tutti-log");
    const fs::path safe_log = scratch.path() / "log";
    std::ofstream safe(safe_log, std::ios::binary);
    std::ifstream log(log_, std::ios::binary);
    log.seekg(begin);
    std::string first, last;
    bool had_any = false;
    for (std::string line; std::getline(log, line);) {
      const std::string safe_line = spec::WithoutPasswords(line);
      had_any |= safe_line != line;
      safe << safe_line << "\n";
      absl::StrAppend(first.size() < kLargestEnd ? &first : &last, safe_line, "\n");
      if (last.size() > 2 * kLargestEnd) last.erase(0, last.size() - kLargestEnd);
    }
    if (!had_any) return first + last;
    safe.close();
    if (!safe) return base::ErrnoStatus(absl::StrCat("write ", safe_log.native()));
    TUTTI_RETURN_IF_ERROR(ReplaceInLog(begin, safe_log));
    return first + last;
  }

  absl::Status ReplaceInLog(off_t begin, const fs::path& text) const {
    if (::truncate(log_.c_str(), begin) != 0) {
      return base::ErrnoStatus(absl::StrCat("truncate ", log_.native()));
    }
    std::ofstream log(log_, std::ios::binary | std::ios::app);
    log << std::ifstream(text, std::ios::binary).rdbuf() << std::flush;
    return log ? absl::OkStatus() : base::ErrnoStatus(absl::StrCat("write ", log_.native()));
  }

  absl::Status MakeVenv() {
    std::string python = "3";
    if (!environment_.python.empty()) {
      const auto found = container::FindPython(environment_.python, environments_, cancelled_);
      if (absl::IsCancelled(found.status())) return Cancelled();
      substitute_ = !found.ok();
      if (found.ok()) python = *found;
      if (!found.ok()) note_ = std::string(found.status().message());
    }
    TUTTI_RETURN_IF_ERROR(base::Annotate(Run({uv_, "venv", "--python", python, folder_.string()}),
                                         "no Python on this machine"));
    if (!substitute_) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const std::string here, LibraryOf(folder_));
    absl::StrAppend(&note_, "; ", absl::StrReplaceAll(here, {{"python", "Python "}}), " is taken");
    return absl::OkStatus();
  }

  // Beside a newer one MLflow 1 cannot log a folder: "No module named 'distutils._modified'".
  absl::StatusOr<std::string> Setuptools() const {
    TUTTI_ASSIGN_OR_RETURN(const std::string library, LibraryOf(folder_));
    const bool is_older = mlflow::HasMlflow1(folder_ / "lib" / library / "site-packages");
    return is_older ? "setuptools<75" : "setuptools<81";
  }

  absl::Status InstallPackages() {
    if (environment_.packages.empty()) return absl::OkStatus();
    TUTTI_RETURN_IF_ERROR(ChooseTorch());
    wheels_first_ = LeavesPythonOpen();
    absl::Status installed = InstallAsAsked();
    if (!absl::IsFailedPrecondition(installed)) return installed;
    if (substitute_) {
      // Versions that were pinned for another Python may have no build for this one.
      const absl::Status again =
          InstallOrOtherTorch(Texts([](const spec::Requirement&) { return true; }));
      if (again.ok()) absl::StrAppend(&note_, ", and versions given by == or ~= are the least");
      if (again.ok() || absl::IsCancelled(again)) return again;
    } else if (MixesTableAndFiles()) {
      // As pip in the image would, which goes by what is asked for last.
      const absl::Status again = InstallOrOtherTorch(Texts(spec::IsOfBuiltInTable));
      if (again.ok()) Note("versions of the image are the least, since files ask for others");
      if (again.ok() || absl::IsCancelled(again)) return again;
    }
    if (std::exchange(wheels_first_, false) && !IsOfNoIndex(installed)) {
      TUTTI_ASSIGN_OR_RETURN(const bool has_all, InstallOnOlderPython());
      if (has_all) return absl::OkStatus();
      installed = InstallAsAsked();
      if (!absl::IsFailedPrecondition(installed)) return installed;
    }
    std::string why = spec::ExplainFailure(environment_, std::string(installed.message()));
    if (!note_.empty()) absl::StrAppend(&why, " (", note_, ")");
    return absl::FailedPreconditionError(why);
  }

  // Whether files pin versions and leave open which Python runs them, as a Dockerfile does whose
  // image brings one.
  bool LeavesPythonOpen() const {
    const auto is_pinned = [](const spec::Requirement& package) {
      return !spec::PinnedVersion(package.text).empty();
    };
    const auto& packages = environment_.packages;
    return environment_.python.empty() && std::any_of(packages.begin(), packages.end(), is_pinned);
  }

  static bool IsOfNoIndex(const absl::Status& failed) {
    return absl::StrContains(failed.message(), "was not found in the package registry");
  }

  // The Python that the images of that day had, of those that uv still fetches.
  std::string PythonOfPins() const { return environment_.newest_day < "2023" ? "3.8" : "3.10"; }

  // Makes the environment anew for the Python of the pins' day. False: they cannot be had there
  // either, or there is no such Python, which the note then says; it is for this machine's again.
  absl::StatusOr<bool> InstallOnOlderPython() {
    TUTTI_ASSIGN_OR_RETURN(const std::string here, LibraryOf(folder_));
    const std::string older = PythonOfPins();
    if (spec::AllowsVersion("<=" + older, absl::StripPrefix(here, "python"))) return false;
    const auto found = container::FindPython(older, environments_, cancelled_);
    if (absl::IsCancelled(found.status())) return Cancelled();
    if (!found.ok()) {
      Note(
          absl::StrCat("they may have builds for an older Python, but ", found.status().message()));
      return false;
    }
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(folder_));
    TUTTI_RETURN_IF_ERROR(Run({uv_, "venv", "--python", *found, folder_.string()}));
    const absl::Status installed = InstallAsAsked();
    if (absl::IsCancelled(installed)) return installed;
    if (!installed.ok()) {
      TUTTI_RETURN_IF_ERROR(base::RemoveTree(folder_));
      TUTTI_RETURN_IF_ERROR(MakeVenv());
      return false;
    }
    Note(absl::StrCat("Python ", older, " is taken, since the pinned versions have no builds for ",
                      absl::StrReplaceAll(here, {{"python", "Python "}})));
    return true;
  }

  // Takes the builds of PyTorch that are wanted, unless their index cannot be reached.
  absl::Status ChooseTorch() {
    torch_ = environment_.torch;
    if (torch_.empty()) return absl::OkStatus();
    if (!environment_.newest_day.empty() && !PinsTorch(environment_)) {
      return TakeOtherTorch("its index does not say when it was uploaded");
    }
    TUTTI_ASSIGN_OR_RETURN(const std::string why, WhyTorchIsAway());
    return why.empty() ? absl::OkStatus() : TakeOtherTorch(why);
  }

  // Asks PyTorch's index for one page, without retries; "" if it answers.
  absl::StatusOr<std::string> WhyTorchIsAway() const {
    const fs::path asked = folder_ / "torch.txt";
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(asked, "torch\n"));
    const std::string python = folder_ / "bin/python", backend = "--torch-backend=" + torch_;
    base::ChildOptions options{.environment = Variables()};
    options.arguments = {uv_,        "pip",  "compile",      "--quiet", "--no-deps",
                         "--python", python, asked.string(), backend};
    options.environment["UV_HTTP_RETRIES"] = "0";
    TUTTI_RETURN_IF_ERROR(AppendToLog(HeadingOf(options.arguments, "")));
    const auto ended = base::RunCommand(options, "", base::Deadline::After(kPatienceWithTorch),
                                        kLargestLog, &cancelled_);
    if (absl::IsCancelled(ended.status())) return Cancelled();
    if (absl::IsDeadlineExceeded(ended.status())) {
      return absl::StrCat("no answer of its index within ",
                          absl::FormatDuration(kPatienceWithTorch));
    }
    TUTTI_RETURN_IF_ERROR(ended.status());
    const std::string said = spec::WithoutPasswords(absl::StrCat(ended->out, ended->err));
    TUTTI_RETURN_IF_ERROR(AppendToLog(said));
    return ended->exit.ok() ? "" : spec::WhyIndexIsAway(environment_, said);
  }

  absl::Status TakeOtherTorch(absl::string_view why) {
    Note(absl::StrCat("PyTorch's build \"", std::exchange(torch_, ""), "\" cannot be had (", why,
                      "): that of the package index is taken"));
    return absl::OkStatus();
  }

  absl::Status InstallAsAsked() {
    return InstallOrOtherTorch(Texts([](const spec::Requirement&) { return false; }));
  }

  absl::Status InstallOrOtherTorch(const std::vector<std::string>& texts) {
    const absl::Status installed = InstallHeld(texts);
    if (installed.ok() || absl::IsCancelled(installed) || torch_.empty()) return installed;
    const std::string torch = std::exchange(torch_, "");
    const absl::Status again = InstallHeld(texts);
    torch_ = torch;
    return again.ok() ? TakeOtherTorch("not with the other packages") : again;
  }

  std::vector<std::string> Texts(
      const std::function<bool(const spec::Requirement&)>& is_loosened) const {
    std::vector<std::string> texts;
    for (const spec::Requirement& package : environment_.packages) {
      texts.push_back(is_loosened(package) ? spec::WithoutPins(package.text) : package.text);
    }
    return texts;
  }

  // As of the day of the pins, and what shares files in one version, each unless the index does not
  // have it so.
  absl::Status InstallHeld(const std::vector<std::string>& requirements) {
    const std::vector<std::string> constraints = spec::ConstraintsOf(requirements);
    const std::string& day = environment_.newest_day;
    absl::Status installed = Install(requirements, constraints, day);
    if (installed.ok() && !day.empty()) {
      Note(absl::StrCat("packages that are not pinned are as of ", day, ", a day after the newest ",
                        "pin (environment.as_of_pins: false takes the newest)"));
    }
    if (absl::IsFailedPrecondition(installed) && !day.empty()) {
      installed = Install(requirements, constraints);
      if (installed.ok()) {
        Note(absl::StrCat("packages cannot all be had as of ", day,
                          ", a day after the newest pin: ", "the newest are taken"));
      }
    }
    if (!absl::IsFailedPrecondition(installed) || constraints.empty()) return installed;
    installed = Install(requirements);
    if (installed.ok()) {
      Note(absl::StrCat("packages may not fit each other, since these cannot be had together: ",
                        absl::StrJoin(constraints, ", ")));
    }
    return installed;
  }

  void Note(absl::string_view what) { absl::StrAppend(&note_, note_.empty() ? "" : "; ", what); }

  bool MixesTableAndFiles() const {
    const auto& packages = environment_.packages;
    const auto of_table = std::count_if(packages.begin(), packages.end(), spec::IsOfBuiltInTable);
    return of_table > 0 && of_table < static_cast<std::ptrdiff_t>(packages.size());
  }

  absl::Status Install(const std::vector<std::string>& requirements,
                       const std::vector<std::string>& constraints = {},
                       const std::string& newest_day = "",
                       const std::string& list_name = kPackageList) {
    const fs::path list = folder_ / list_name, held = folder_ / "constraints.txt";
    TUTTI_RETURN_IF_ERROR(
        base::WriteFileAtomic(list, absl::StrCat(absl::StrJoin(requirements, "\n"), "\n")));
    std::vector<std::string> arguments = {
        uv_, "pip", "install", "--python", (folder_ / "bin/python").string(), "-r", list.string()};
    if (!constraints.empty()) {
      TUTTI_RETURN_IF_ERROR(
          base::WriteFileAtomic(held, absl::StrCat(absl::StrJoin(constraints, "\n"), "\n")));
      arguments.insert(arguments.end(), {"-c", held.string()});
    }
    arguments.insert(arguments.end(), environment_.options.begin(), environment_.options.end());
    for (const char* package : kLongBuilds) {
      if (wheels_first_) arguments.insert(arguments.end(), {"--no-build-package", package});
    }
    if (!torch_.empty()) {
      arguments.push_back(absl::StrCat("--torch-backend=", torch_));
      // That index does not say when files were uploaded; the pin of PyTorch says what is taken.
      if (!newest_day.empty()) {
        for (const char* name : {"torch", "torchvision", "torchaudio", "torchtext", "torchdata"}) {
          arguments.push_back(absl::StrCat("--exclude-newer-package=", name, "=false"));
        }
      }
    }
    return Run(arguments, newest_day);
  }

  const spec::Environment& environment_;
  const fs::path environments_, folder_, log_;
  const std::atomic<bool>& cancelled_;
  std::string uv_;
  std::string torch_;          // of --torch-backend; empty: what the package index has
  bool substitute_ = false;    // another Python than the one that was asked for
  bool wheels_first_ = false;  // no build of kLongBuilds, as there may be a Python with wheels
  std::string note_;
};

// Whole, and its Python is still on the machine.
bool IsComplete(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "complete", error) && fs::exists(folder / "bin/python", error);
}

// Whether it is whole; then it is marked as used just now, which keeps who removes unused ones, by
// the same lock, from taking it away. False while another makes or removes it.
bool Use(const fs::path& folder, const fs::path& lock_file) {
  const auto lock = base::Open(lock_file, O_RDWR | O_CREAT);
  if (lock.ok() && ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0) return false;
  if (!IsComplete(folder)) return false;
  base::Touch(folder);
  return true;
}

// Returns a stamp of the files behind a requirement that is a path, since a file of the same name
// may have changed; "" for any other requirement.
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
  std::vector<std::string> texts;
  for (const spec::Requirement& package : environment.packages) {
    texts.push_back(package.text);
    content["packages"].push_back({package.text, StampOf(package.text)});
    if (spec::IsOfBuiltInTable(package)) content["packages"].back().push_back("may be loosened");
  }
  const std::vector<std::string> constraints = spec::ConstraintsOf(texts);
  if (!constraints.empty()) content["constraints"] = constraints;
  if (!environment.as_of_pins) content["as_of_pins"] = false;
  if (!environment.newest_day.empty()) content["newest_day"] = environment.newest_day;
  if (!environment.torch.empty()) content["torch"] = environment.torch;
  const std::string text = content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return base::Hex(base::Sha256Of(text)).substr(0, 24);
}

absl::StatusOr<MadeEnvironment> MakeEnvironment(const spec::Environment& wanted,
                                                const fs::path& environments,
                                                const std::atomic<bool>& cancelled,
                                                bool node_has_gpus) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(environments));
  const spec::Environment chosen =
      WithTorchBuilds(wanted, container::UvVariables(environments), node_has_gpus);
  TUTTI_ASSIGN_OR_RETURN(const spec::Environment environment,
                         container::WithOwnPackage(AsOfItsPins(chosen, environments, cancelled)));
  const std::string key = EnvironmentKey(environment);
  const fs::path folder = environments / key;
  const fs::path lock_file = environments / absl::StrCat(key, ".lock");
  base::UniqueFd lock;
  if (!Use(folder, lock_file)) {
    auto locked = base::LockFile(lock_file, cancelled);
    if (absl::IsCancelled(locked.status())) return Cancelled();
    TUTTI_ASSIGN_OR_RETURN(lock, std::move(locked));
  }
  if (!IsComplete(folder)) return Maker(environment, environments, key, cancelled).Make();
  if (lock.valid()) base::Touch(folder);
  TUTTI_ASSIGN_OR_RETURN(std::string note, base::ReadFile(folder / "complete", kLargestLog));
  return MadeEnvironment{folder, std::move(note)};
}

}  // namespace tutti::launch
