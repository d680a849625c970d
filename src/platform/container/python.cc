#include "platform/container/python.h"

#include <fcntl.h>

#include <algorithm>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "base/child_process.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/status.h"
#include "base/waiting.h"
#include "platform/container/uv.h"
#include "spec/install_failure.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLongestFetch = absl::Seconds(30);
constexpr absl::Duration kLongestCheck = absl::Seconds(6);  // who submits waits for it
constexpr auto kRemembered = std::chrono::minutes(10);      // that a fetch failed
constexpr uint64_t kMostOfUvsWords = 1 << 20;

class Search {
 public:
  Search(const std::string& version, const fs::path& folder, const std::atomic<bool>& cancelled)
      : version_(version), folder_(folder), cancelled_(cancelled) {
    failure_ = folder / absl::StrCat("python-", base::Hex(base::Sha256Of(version)).substr(0, 12),
                                     ".missing");
  }

  absl::StatusOr<std::string> Find() {
    if (std::string plain = LookInPath(); !plain.empty()) return plain;
    TUTTI_ASSIGN_OR_RETURN(uv_, FindUv(folder_, cancelled_));
    auto here = LookHere();
    if (here.ok() || absl::IsCancelled(here.status())) return here;
    TUTTI_RETURN_IF_ERROR(Fetch());
    return LookHere();
  }

 private:
  // "3.9" as python3.9, without uv, which may have to be installed first; "" if it is not there or
  // does not run, as pyenv's stand-in of a version that is not chosen.
  std::string LookInPath() {
    const auto variables = UvVariables(folder_);
    const std::string name = absl::StrCat("python", version_);
    for (const absl::string_view folder : absl::StrSplit(variables.at("PATH"), ':')) {
      const auto path = base::FindProgram(name, {{"PATH", std::string(folder)}});
      if (!path.ok()) continue;
      base::ChildOptions options{.arguments = {*path, "-c", ""}, .environment = variables};
      const auto null = base::Open("/dev/null", O_WRONLY);
      if (!null.ok()) return "";
      options.stdout_fd = options.stderr_fd = null->get();
      const auto ended = base::RunToEnd(options, cancelled_, base::Deadline::After(kLongestFetch));
      if (ended.ok() && ended->ok()) return *path;
    }
    return "";
  }

  // What uv wrote to standard output; FailedPrecondition holds the rest of its words.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& arguments) {
    const base::TemporaryDirectory said("tutti-python");
    const fs::path out = said.path() / "out", words = said.path() / "words";
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd out_fd, base::Open(out, O_WRONLY | O_CREAT));
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd words_fd, base::Open(words, O_WRONLY | O_CREAT));
    base::ChildOptions options{.arguments = {uv_}, .environment = UvVariables(folder_)};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.stdout_fd = out_fd.get();
    options.stderr_fd = words_fd.get();
    options.die_with_parent = true;
    options.directory = said.path();  // no .python-version of the service's folder counts
    TUTTI_ASSIGN_OR_RETURN(
        const base::ExitStatus ended,
        base::RunToEnd(options, cancelled_, base::Deadline::After(kLongestFetch)));
    TUTTI_ASSIGN_OR_RETURN(const std::string text,
                           base::ReadFile(ended.ok() ? out : words, kMostOfUvsWords));
    if (!ended.ok()) return absl::FailedPreconditionError(text);
    return std::string(absl::StripAsciiWhitespace(text));
  }

  absl::StatusOr<std::string> LookHere() {
    TUTTI_ASSIGN_OR_RETURN(std::string path, Run({"python", "find", "--no-project", version_}));
    if (path.empty()) return Missing("uv found none");
    return path;
  }

  absl::Status Fetch() {
    const auto variables = UvVariables(folder_);
    if (variables.at("UV_PYTHON_DOWNLOADS") == "never") {
      return Missing("UV_PYTHON_DOWNLOADS is \"never\"");
    }
    if (const std::string before = FailureBefore(); !before.empty()) return Missing(before);
    const auto fetched = Run({"python", "install", version_});
    if (fetched.ok() || absl::IsCancelled(fetched.status())) return fetched.status();
    const std::string why =
        absl::IsDeadlineExceeded(fetched.status())
            ? absl::StrCat("it did not come within ", absl::FormatDuration(kLongestFetch))
            : Cause(fetched.status().message());
    base::WriteFileAtomic(failure_, why).IgnoreError();
    return Missing(why);
  }

  // The address and the last cause of uv's chain of them.
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

  std::string FailureBefore() const {
    std::error_code error;
    const auto written = fs::last_write_time(failure_, error);
    if (error || fs::file_time_type::clock::now() - written > kRemembered) return "";
    return base::ReadFile(failure_, kMostOfUvsWords).value_or("");
  }

  absl::Status Missing(absl::string_view why) const {
    return absl::NotFoundError(
        absl::StrCat("Python ", version_, " is not on this machine and cannot be fetched: ", why));
  }

  const std::string version_;
  const fs::path folder_;
  const std::atomic<bool>& cancelled_;
  fs::path failure_;
  std::string uv_;
};

}  // namespace

absl::StatusOr<std::string> FindPython(const std::string& version, const fs::path& folder,
                                       const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  return Search(version, folder, cancelled).Find();
}

absl::Status CheckPython(const spec::Environment& environment, const fs::path& folder,
                         std::vector<std::string>& warnings) {
  if (environment.is_host || !environment.image.empty() || environment.python.empty()) {
    return absl::OkStatus();
  }
  const std::string place = environment.python_place.empty()
                                ? absl::StrCat("environment ", environment.name)
                                : environment.python_place;
  if (environment.python == "2" || absl::StartsWith(environment.python, "2.")) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": Python ", environment.python,
                     " cannot be had: ask for Python 3.8 or a newer one"));
  }
  std::atomic<bool> cancelled = false;
  absl::Notification done;
  std::thread limit([&] {
    if (!done.WaitForNotificationWithTimeout(kLongestCheck)) cancelled = true;
  });
  const auto found = FindPython(environment.python, folder, cancelled);
  done.Notify();
  limit.join();
  if (absl::IsNotFound(found.status())) {
    const std::string warning = absl::StrCat(
        place, ": ", found.status().message(),
        "; this machine's Python is taken, with versions given by == or ~= as the least: install "
        "that Python, or name a mirror of uv's in UV_PYTHON_INSTALL_MIRROR");
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
      warnings.push_back(warning);
    }
  }
  return absl::OkStatus();  // what else is wrong is said when the environment is made
}

absl::Status CheckPythons(const spec::JobSpec& job, const fs::path& folder,
                          std::vector<std::string>& warnings) {
  for (const spec::Step& step : job.steps) {
    TUTTI_RETURN_IF_ERROR(CheckPythons(step.job, folder, warnings));
  }
  if (job.kind == spec::JobKind::kPipeline || job.compute != "local") return absl::OkStatus();
  return CheckPython(job.environment, folder, warnings);
}

}  // namespace tutti::container
