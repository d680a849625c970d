#include "platform/container/python/python.h"

#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/container/python/uv.h"
#include "spec/environment/install_failure.h"
#include "spec/environment/python_version.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLongestFetch = absl::Seconds(30);
constexpr auto kRemembered = std::chrono::minutes(10);  // what a search has ended with
constexpr size_t kMostOfUvsWords = 1 << 20;
constexpr int kOldestMinor = 7, kNewestMinor = 30;  // that may be in PATH as python3.N
constexpr char kSayVersion[] = "import platform; print(platform.python_version())";

class Search {
 public:
  Search(const std::string& version, const fs::path& folder, const std::atomic<bool>& cancelled)
      : version_(version), folder_(folder), cancelled_(cancelled) {
    const std::string key = base::Hex(base::Sha256Of(version)).substr(0, 12);
    failure_ = folder / absl::StrCat("python-", key, ".missing");
  }

  absl::StatusOr<std::string> Find() {
    if (std::string plain = LookInPath(); !plain.empty()) return plain;
    if (!too_old_.empty()) {
      return absl::NotFoundError(
          absl::StrCat("Python ", version_, " (", too_old_,
                       ") is too old: environments are made of Python 3.7 and newer ones"));
    }
    TUTTI_ASSIGN_OR_RETURN(uv_, FindUv(folder_, cancelled_));
    auto here = LookHere();
    if (here.ok() || cancelled_) return here;
    TUTTI_RETURN_IF_ERROR(Fetch());
    return LookHere();
  }

 private:
  struct Installed {
    std::string path, version;  // "3.9.18"; empty: there is none
  };

  // Looks without uv, which may have to be installed first; "" if none is there. For a range the
  // Python that PATH's python3 is comes first, then the newest.
  std::string LookInPath() {
    const auto fits = [this](const Installed& python) { return Fits(python); };
    if (!spec::IsPythonRange(version_)) {
      return FirstInPath(absl::StrCat("python", version_), fits).path;
    }
    Installed found = FirstInPath("python3", [](const Installed&) { return true; });
    if (!found.path.empty() && !Fits(found)) found.path.clear();
    for (int minor = kNewestMinor; found.path.empty() && minor >= kOldestMinor; --minor) {
      found = FirstInPath(absl::StrCat("python3.", minor), fits);
    }
    return found.path;
  }

  // Returns the first wanted one in PATH that runs: pyenv's shim for a version that is not chosen
  // does not.
  Installed FirstInPath(const std::string& name,
                        const std::function<bool(const Installed&)>& is_wanted) {
    const auto variables = UvVariables(folder_);
    for (const absl::string_view folder : absl::StrSplit(variables.at("PATH"), ':')) {
      const auto path = base::FindProgram(name, {{"PATH", std::string(folder)}});
      if (!path.ok()) continue;
      const auto ran = Run({*path, "-c", kSayVersion});
      if (!ran.ok() || !ran->exit.ok()) continue;
      Installed python{*path, std::string(absl::StripAsciiWhitespace(ran->out))};
      if (is_wanted(python)) return python;
    }
    return {};
  }

  bool Fits(const Installed& python) {
    const bool is_range = spec::IsPythonRange(version_);
    if (is_range && !spec::AllowsVersion(version_, python.version)) return false;
    if (!spec::IsTooOldPython(python.version)) return true;
    if (!is_range) too_old_ = absl::StrCat(python.version, " in ", python.path);
    return false;
  }

  absl::StatusOr<base::CommandResult> Run(std::vector<std::string> arguments) {
    const base::ChildOptions options{.arguments = std::move(arguments),
                                     .environment = UvVariables(folder_),
                                     .directory = "/"};  // where no .python-version counts
    return base::RunCommand(options, "", base::Deadline::After(kLongestFetch), kMostOfUvsWords,
                            &cancelled_);
  }

  // Returns what uv wrote to standard output; FailedPrecondition has what it wrote to standard
  // error.
  absl::StatusOr<std::string> RunUv(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), uv_);
    TUTTI_ASSIGN_OR_RETURN(const base::CommandResult ended, Run(std::move(arguments)));
    if (!ended.exit.ok()) return absl::FailedPreconditionError(ended.err);
    return std::string(absl::StripAsciiWhitespace(ended.out));
  }

  absl::StatusOr<std::string> LookHere() {
    TUTTI_ASSIGN_OR_RETURN(std::string path, RunUv({"python", "find", "--no-project", version_}));
    if (path.empty()) return Missing("uv found none");
    return path;
  }

  absl::Status Fetch() {
    const auto variables = UvVariables(folder_);
    if (variables.at("UV_PYTHON_DOWNLOADS") == "never") {
      return Missing("UV_PYTHON_DOWNLOADS is \"never\"");
    }
    if (const std::string before = Remembered(failure_); !before.empty()) return Missing(before);
    const auto fetched = RunUv({"python", "install", version_});
    if (fetched.ok() || cancelled_) return fetched.status();
    const std::string why =
        absl::IsDeadlineExceeded(fetched.status())
            ? absl::StrCat("it did not come within ", absl::FormatDuration(kLongestFetch))
            : Cause(fetched.status().message());
    base::WriteFileAtomic(failure_, why).IgnoreError();
    return Missing(why);
  }

  // Returns the address and the last cause of uv's chain of causes.
  static std::string Cause(absl::string_view words) {
    std::string first, last;
    for (absl::string_view line : absl::StrSplit(words, '\n', absl::SkipEmpty())) {
      line = absl::StripAsciiWhitespace(line);
      if (absl::ConsumePrefix(&line, "error: ")) first = std::string(line);
      if (!absl::ConsumePrefix(&line, "Caused by: ")) continue;
      if (absl::StrContains(line, "://")) first = std::string(line);
      last = std::string(line);
    }
    if (first.empty()) return spec::InOneLine(words);
    return spec::InOneLine(last.empty() || last == first ? first : absl::StrCat(first, ": ", last));
  }

  static std::string Remembered(const fs::path& file) {
    std::error_code error;
    const auto written = fs::last_write_time(file, error);
    if (error || fs::file_time_type::clock::now() - written > kRemembered) return "";
    return base::ReadFile(file, kMostOfUvsWords).value_or("");
  }

  absl::Status Missing(absl::string_view why) const {
    return absl::NotFoundError(
        absl::StrCat("Python ", version_, " is not on this machine and cannot be fetched: ", why));
  }

  const std::string version_;
  const fs::path folder_;
  const std::atomic<bool>& cancelled_;
  std::string too_old_;  // "3.6.15 in /usr/bin/python3.6"
  fs::path failure_;     // why it could not be fetched
  std::string uv_;
};

}  // namespace

absl::StatusOr<std::string> FindPython(const std::string& version, const fs::path& folder,
                                       const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  return Search(version, folder, cancelled).Find();
}

}  // namespace tutti::container
