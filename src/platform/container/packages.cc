#include "platform/container/packages.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <map>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/container/kept_images.h"
#include "platform/container/podman.h"
#include "platform/container/python/uv.h"
#include "spec/environment/install_failure.h"
#include "spec/environment/shared_files.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr int kForm = 1;  // of what is built; another number builds all anew
constexpr uint64_t kMostSaid = 1 << 20;

// Runs in the image, with the build's own folder at /run/tutti. What it says stays there. What
// shares files is held to one version, and all as of the day of the pins, each unless the index
// does not have it so.
constexpr char kInstall[] = R"(cd /run/tutti
exec >said 2>&1
python=$(command -v python3 || command -v python) || { echo 'the image has no Python'; exit 1; }
if [ -x ./uv ] && ./uv --version >version; then
  install="./uv pip install --python $python --break-system-packages"
else
  install="$python -m pip install --disable-pip-version-check"
fi
install="$install -r requirements.txt" held=
[ -s constraints.txt ] && held='-c constraints.txt'
[ -n "$NEWEST" ] && env UV_EXCLUDE_NEWER="$NEWEST" $install $held "$@" && exit
exec >said 2>&1
[ -n "$held" ] && $install $held "$@" && exit
exec >said 2>&1
exec $install "$@"
)";

// Returns the package indexes that this machine's environment names, for pip and for uv.
std::map<std::string, std::string> IndexVariables() {
  static constexpr std::pair<absl::string_view, absl::string_view> kBoth[] = {
      {"PIP_INDEX_URL", "UV_DEFAULT_INDEX"},
      {"PIP_EXTRA_INDEX_URL", "UV_INDEX"},
      {"PIP_FIND_LINKS", "UV_FIND_LINKS"},
      {"PIP_NO_INDEX", "UV_NO_INDEX"}};
  std::map<std::string, std::string> told = {{"PIP_BREAK_SYSTEM_PACKAGES", "1"},
                                             {"PIP_ROOT_USER_ACTION", "ignore"},
                                             {"UV_CACHE_DIR", "/run/tutti-cache"},
                                             {"UV_LINK_MODE", "copy"},
                                             {"UV_NO_PROGRESS", "1"},
                                             {"UV_PYTHON_DOWNLOADS", "never"},
                                             {"NO_COLOR", "1"}};
  const std::map<std::string, std::string> own = base::CurrentEnvironment();
  for (const auto& [pip, uv] : kBoth) {
    const auto of_pip = own.find(std::string(pip)), of_uv = own.find(std::string(uv));
    if (of_pip != own.end()) told[std::string(pip)] = told[std::string(uv)] = of_pip->second;
    if (of_uv != own.end()) told[std::string(uv)] = of_uv->second;
  }
  return told;
}

class PackageBuild {
 public:
  PackageBuild(const spec::Environment& environment, const std::string& base_name,
               const std::string& base, const fs::path& folder, const std::atomic<bool>& cancelled)
      : environment_(environment),
        base_name_(base_name),
        base_(base),
        folder_(folder),
        cancelled_(cancelled) {
    std::vector<std::string> texts;
    for (const spec::Requirement& package : environment.packages) texts.push_back(package.text);
    const std::vector<std::string> constraints = spec::ConstraintsOf(texts);
    requirements_ = absl::StrCat(absl::StrJoin(texts, "\n"), "\n");
    constraints_ = absl::StrJoin(constraints, "\n");
    std::string content = absl::StrCat(kForm, "\n", base, "\n", requirements_, "\n",
                                       absl::StrJoin(environment.options, "\n"), constraints_,
                                       environment.newest_day);
    for (const spec::Requirement& package : environment.packages) {  // a file may change
      const auto digest = base::Sha256OfFile(package.text);
      if (digest.ok()) absl::StrAppend(&content, "\n", base::Hex(*digest));
    }
    key_ = base::Hex(base::Sha256Of(content)).substr(0, 24);
    name_ = absl::StrCat("localhost/tutti-packages:", key_);
    stem_ = folder / absl::StrCat("image-", key_, ".", base::HostName());
  }

  absl::StatusOr<std::string> Make() {
    if (auto here = Take(); here.ok() || absl::IsCancelled(here.status())) return here;
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                           base::LockFile(ImageLock(folder_, key_), cancelled_));
    const bool is_recorded = TakeImage(folder_, key_);
    if (auto here = Find(); here.ok() || absl::IsCancelled(here.status())) {
      if (here.ok() && !is_recorded) Record(*here);
      return here;
    }
    const base::TemporaryDirectory build("tutti-build");
    TUTTI_RETURN_IF_ERROR(Fill(build.path()));
    const absl::Status built = Build(build.path());
    if (!built.ok()) return built;
    auto made = Find();
    if (made.ok()) Record(*made);
    return made;
  }

 private:
  // Takes the lock as make_image.cc does.
  absl::StatusOr<std::string> Take() {
    const auto lock = base::Open(ImageLock(folder_, key_), O_RDWR | O_CREAT);
    if (lock.ok() && ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0) {
      return absl::NotFoundError(name_);
    }
    const bool is_recorded = TakeImage(folder_, key_);
    auto here = Find();
    if (here.ok() && !is_recorded) Record(*here);
    return here;
  }

  void Record(const std::string& id) {
    KeptImage image{.key = key_, .name = name_, .id = id, .base = base_name_};
    image.bytes = SizeOfImage(id, cancelled_);
    RecordImage(folder_, image).IgnoreError();
  }

  absl::StatusOr<std::string> Find() { return LookUpImage(name_, cancelled_); }

  absl::Status Fill(const fs::path& build) {
    std::string variables;
    for (const auto& [name, value] : IndexVariables()) {
      absl::StrAppend(&variables, "export ", name, "=", base::ShellQuoted(value), "\n");
    }
    if (!environment_.newest_day.empty()) {
      absl::StrAppend(&variables, "NEWEST=", environment_.newest_day,
                      "T23:59:59Z\nexport NEWEST\n");
    }
    std::string options;
    for (const std::string& option : environment_.options) {
      absl::StrAppend(&options, " ", base::ShellQuoted(option));
    }
    const std::pair<const char*, std::string> files[] = {
        {"Containerfile", absl::StrCat("FROM ", base_, "\nUSER 0\nRUN sh /run/tutti/start\n")},
        {"requirements.txt", requirements_},
        {"constraints.txt", constraints_},
        {"install", kInstall},
        {"start", absl::StrCat(variables, "exec sh /run/tutti/install", options, "\n")}};
    for (const auto& [name, content] : files) {
      TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(build / name, content, 0700));
    }
    std::error_code error;
    const auto uv = FindUv(folder_, cancelled_);
    if (absl::IsCancelled(uv.status())) return uv.status();
    if (uv.ok()) fs::copy_file(*uv, build / "uv", error);  // else the image's pip does it
    return base::MakeDirectories(folder_ / "cache");
  }

  // Folders and files of this machine that are read for packages.
  std::set<std::string> Sources() const {
    std::set<std::string> sources;
    std::vector<std::string> named = absl::StrSplit(requirements_, '\n');
    for (const auto& [name, value] : IndexVariables()) {
      if (!absl::StrContains(name, "FIND_LINKS")) continue;
      for (const absl::string_view part : absl::StrSplit(value, ' ')) named.emplace_back(part);
    }
    std::error_code error;
    for (const std::string& path : named) {
      if (absl::StartsWith(path, "/") && fs::exists(path, error)) sources.insert(path);
    }
    return sources;
  }

  absl::Status Build(const fs::path& build) {
    std::vector<std::string> arguments = {
        "build",
        "--network=host",
        "--pull=never",
        "--no-cache",  // podman's does not see that what is mounted differs
        absl::StrCat("--tag=", name_),
        absl::StrCat("--volume=", build.string(), ":/run/tutti"),
        absl::StrCat("--volume=", (folder_ / "cache").string(), ":/run/tutti-cache"),
        absl::StrCat("--file=", (build / "Containerfile").string())};
    for (const std::string& path : Sources()) {
      arguments.push_back(absl::StrCat("--volume=", path, ":", path, ":ro"));
    }
    for (std::string& option : LimitOptions()) arguments.push_back(std::move(option));
    const fs::path context = build / "context";  // nothing is copied from it
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(context));
    arguments.push_back(context.string());
    const auto built = RunPodman(arguments, absl::StrCat(stem_.string(), ".log"), cancelled_);
    if (built.ok() || absl::IsCancelled(built.status())) return built.status();
    const std::string said = base::ReadFile(build / "said", kMostSaid).value_or("");
    const std::string why = spec::ExplainFailure(
        environment_, said.empty() ? std::string(built.status().message()) : said);
    const bool has_place = !absl::StartsWith(why, "environment ");
    return absl::FailedPreconditionError(
        has_place ? why : absl::StrCat(environment_.image.location, ": ", why));
  }

  const spec::Environment& environment_;
  const std::string base_name_, base_;
  const fs::path folder_;
  const std::atomic<bool>& cancelled_;
  std::string requirements_, constraints_, key_, name_;
  fs::path stem_;
};

}  // namespace

absl::StatusOr<std::string> WithPackages(const spec::Environment& environment,
                                         const std::string& base_name, const std::string& base,
                                         const fs::path& folder,
                                         const std::atomic<bool>& cancelled) {
  return PackageBuild(environment, base_name, base, folder, cancelled).Make();
}

}  // namespace tutti::container
