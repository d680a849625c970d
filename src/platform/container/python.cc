#include "platform/container/python.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/at_once.h"
#include "base/child_process.h"
#include "base/command.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/status.h"
#include "platform/container/uv.h"
#include "spec/install_failure.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLongestFetch = absl::Seconds(30);
constexpr auto kRemembered = std::chrono::minutes(10);  // what a search has ended with
constexpr size_t kMostOfUvsWords = 1 << 20;
constexpr size_t kMostSearches = 8;

class Search {
 public:
  Search(const std::string& version, const fs::path& folder, const std::atomic<bool>& cancelled,
         base::Deadline deadline)
      : version_(version),
        folder_(folder),
        cancelled_(cancelled),
        deadline_(deadline),
        is_hasty_(deadline.Remaining() < kLongestFetch) {
    const std::string key = base::Hex(base::Sha256Of(version)).substr(0, 12);
    failure_ = folder / absl::StrCat("python-", key, ".missing");
    lateness_ = folder / absl::StrCat("python-", key, ".late");
  }

  absl::StatusOr<std::string> Find() {
    if (std::string plain = LookInPath(); !plain.empty()) return plain;
    if (is_hasty_ && !Remembered(lateness_).empty()) {
      return absl::DeadlineExceededError("as minutes before");
    }
    auto found = LookFurther();
    if (is_hasty_ && absl::IsDeadlineExceeded(found.status())) {
      base::WriteFileAtomic(lateness_, found.status().message()).IgnoreError();
    }
    return found;
  }

 private:
  absl::StatusOr<std::string> LookFurther() {
    TUTTI_ASSIGN_OR_RETURN(uv_, FindUv(folder_, cancelled_, deadline_));
    auto here = LookHere();
    if (here.ok() || IsOver()) return here;
    TUTTI_RETURN_IF_ERROR(Fetch());
    return LookHere();
  }

  bool IsOver() const { return cancelled_ || deadline_.Expired(); }

  // "3.9" as python3.9, without uv, which may have to be installed first; "" if it is not there or
  // does not run, as pyenv's stand-in of a version that is not chosen.
  std::string LookInPath() {
    const auto variables = UvVariables(folder_);
    const std::string name = absl::StrCat("python", version_);
    for (const absl::string_view folder : absl::StrSplit(variables.at("PATH"), ':')) {
      const auto path = base::FindProgram(name, {{"PATH", std::string(folder)}});
      if (!path.ok()) continue;
      const auto ran = Run({*path, "-c", ""});
      if (ran.ok() && ran->exit.ok()) return *path;
    }
    return "";
  }

  absl::StatusOr<base::CommandResult> Run(std::vector<std::string> arguments) {
    const base::ChildOptions options{.arguments = std::move(arguments),
                                     .environment = UvVariables(folder_),
                                     .directory = "/"};  // where no .python-version counts
    return base::RunCommand(options, "",
                            base::Deadline::Sooner(deadline_, base::Deadline::After(kLongestFetch)),
                            kMostOfUvsWords, &cancelled_);
  }

  // What uv wrote to standard output; FailedPrecondition holds the rest of its words.
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
    if (fetched.ok() || IsOver()) return fetched.status();
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
  const base::Deadline deadline_;
  const bool is_hasty_;          // who waits is a user, who does not have the time of a fetch
  fs::path failure_, lateness_;  // why it could not be fetched; that it took too long for a user
  std::string uv_;
};

// What a job, or one below it, asks for.
struct Asked {
  std::string place, version;
};

void Collect(const spec::Environment& environment, std::vector<Asked>& asked) {
  if (environment.is_host || !environment.image.empty() || environment.python.empty()) return;
  asked.push_back({environment.python_place.empty() ? absl::StrCat("environment ", environment.name)
                                                    : environment.python_place,
                   environment.python});
}

void Collect(const spec::JobSpec& job, std::vector<Asked>& asked) {
  for (const spec::Step& step : job.steps) Collect(step.job, asked);
  if (job.kind == spec::JobKind::kPipeline || job.compute != "local") return;
  Collect(job.environment, asked);
}

bool IsPython2(const std::string& version) {
  return version == "2" || absl::StartsWith(version, "2.");
}

using Found = std::map<std::string, absl::Status>;  // by version

void FindAll(Found& found, const fs::path& folder, base::Deadline deadline) {
  static const std::atomic<bool> never = false;
  std::vector<Found::value_type*> list;
  for (auto& entry : found) list.push_back(&entry);
  base::ForEachAtOnce(list.size(), kMostSearches, [&](size_t i) {
    list[i]->second = FindPython(list[i]->first, folder, never, deadline).status();
  });
}

absl::Status Check(const std::vector<Asked>& asked, const fs::path& folder, base::Deadline deadline,
                   std::vector<std::string>& warnings) {
  Found found;
  std::vector<std::string> faults;
  for (const Asked& one : asked) {
    if (!IsPython2(one.version)) {
      found.try_emplace(one.version);
      continue;
    }
    faults.push_back(absl::StrCat(one.place, ": Python ", one.version,
                                  " cannot be had: ask for Python 3.8 or a newer one"));
  }
  FindAll(found, folder, deadline);
  for (const Asked& one : asked) {
    const auto answer = found.find(one.version);
    // What else is wrong is said when the environment is made.
    if (answer == found.end() || !absl::IsNotFound(answer->second)) continue;
    warnings.push_back(absl::StrCat(
        one.place, ": ", answer->second.message(),
        "; this machine's Python is taken, with versions given by == or ~= as the least: install "
        "that Python, or name a mirror of uv's in UV_PYTHON_INSTALL_MIRROR"));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
}

}  // namespace

absl::StatusOr<std::string> FindPython(const std::string& version, const fs::path& folder,
                                       const std::atomic<bool>& cancelled,
                                       base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  return Search(version, folder, cancelled, deadline).Find();
}

absl::Status CheckPython(const spec::Environment& environment, const fs::path& folder,
                         base::Deadline deadline, std::vector<std::string>& warnings) {
  std::vector<Asked> asked;
  Collect(environment, asked);
  return Check(asked, folder, deadline, warnings);
}

absl::Status CheckPythons(const spec::JobSpec& job, const fs::path& folder, base::Deadline deadline,
                          std::vector<std::string>& warnings) {
  std::vector<Asked> asked;
  Collect(job, asked);
  return Check(asked, folder, deadline, warnings);
}

}  // namespace tutti::container
