#include "platform/container/python/python_check.h"

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/container/python/python.h"
#include "spec/environment/python_version.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSearches = 8;

// Searches are the searches that are under way in this process, one for each version and folder:
// what is installed or fetched for a check that has not waited for it serves the next one. They end
// with the process. Thread-safe.
class Searches {
 public:
  using Search = std::shared_future<absl::Status>;

  static Searches& OfThisProcess() {
    static Searches searches;
    return searches;
  }

  ~Searches() { cancelled_ = true; }  // then waits: a future that std::async gave does

  // Begins a search, or joins one that is under way. The result is invalid if too many others are.
  Search Begin(const std::string& version, const fs::path& folder) {
    absl::MutexLock lock(&mutex_);
    // The results of searches that have ended lie in the folder.
    std::erase_if(under_way_, [](const auto& search) { return IsReady(search.second); });
    const Name name(version, folder);
    const auto same = under_way_.find(name);
    if (same != under_way_.end()) return same->second;
    if (under_way_.size() >= kMostSearches) return {};
    return under_way_[name] = std::async(std::launch::async, [this, name] {
                                return FindPython(name.first, name.second, cancelled_).status();
                              }).share();
  }

 private:
  using Name = std::pair<std::string, fs::path>;

  static bool IsReady(const Search& search) {
    return search.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  std::atomic<bool> cancelled_ = false;  // before the searches that read it
  absl::Mutex mutex_;
  std::map<Name, Search> under_way_ ABSL_GUARDED_BY(mutex_);
};

// PythonRequest is the Python that a job, or one below it, asks for.
struct PythonRequest {
  std::string location, version;
};

void Collect(const spec::Environment& environment, std::vector<PythonRequest>& asked) {
  if (environment.is_host || !environment.image.empty() || environment.python.empty()) return;
  asked.push_back({environment.python_place.empty() ? absl::StrCat("environment ", environment.name)
                                                    : environment.python_place,
                   environment.python});
}

void Collect(const spec::JobSpec& job, std::vector<PythonRequest>& asked) {
  for (const spec::Step& step : job.steps) Collect(step.job, asked);
  if (job.kind == spec::JobKind::kPipeline || job.compute != "local") return;
  Collect(job.environment, asked);
}

bool IsPython2(const std::string& version) {
  return version == "2" || absl::StartsWith(version, "2.");
}

// Searches for all of them at the same time, and returns the results that are known by the
// deadline.
std::map<std::string, absl::Status> FindAll(const std::set<std::string>& versions,
                                            const fs::path& folder, base::Deadline deadline) {
  std::map<std::string, Searches::Search> searches;
  for (const std::string& version : versions) {
    searches[version] = Searches::OfThisProcess().Begin(version, folder);
  }
  std::map<std::string, absl::Status> found;
  for (const auto& [version, search] : searches) {
    if (!search.valid()) continue;
    const auto left = absl::ToChronoNanoseconds(deadline.Remaining());
    if (search.wait_for(left) == std::future_status::ready) found[version] = search.get();
  }
  return found;
}

std::string NotYetKnown(const std::string& version) {
  return absl::StrCat("whether Python ", version,
                      " can be had is not known yet: it is still being looked for; the job waits "
                      "for it, and if it cannot be had this machine's Python is taken");
}

// "" if it is there. What else is wrong is said when the environment is made.
std::string WhatIsTaken(const std::string& version, const absl::Status& found) {
  if (!absl::IsNotFound(found)) return "";
  return absl::StrCat(
      found.message(),
      "; this machine's Python is taken, with versions given by == or ~= as the least: ",
      spec::IsTooOldPython(version)
          ? "ask for Python 3.8 or a newer one"
          : "install that Python, or name a mirror of uv's in UV_PYTHON_INSTALL_MIRROR");
}

absl::Status Check(const std::vector<PythonRequest>& asked, const fs::path& folder,
                   base::Deadline deadline, std::vector<std::string>& warnings) {
  std::set<std::string> versions;
  std::vector<std::string> faults;
  for (const PythonRequest& one : asked) {
    if (!IsPython2(one.version)) {
      versions.insert(one.version);
      continue;
    }
    faults.push_back(absl::StrCat(one.location, ": Python ", one.version,
                                  " cannot be had: ask for Python 3.8 or a newer one"));
  }
  const std::map<std::string, absl::Status> found = FindAll(versions, folder, deadline);
  for (const PythonRequest& one : asked) {
    if (IsPython2(one.version)) continue;
    const auto answer = found.find(one.version);
    const std::string doubt =
        answer == found.end() ? NotYetKnown(one.version) : WhatIsTaken(one.version, answer->second);
    if (!doubt.empty()) warnings.push_back(absl::StrCat(one.location, ": ", doubt));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
}

}  // namespace

absl::Status CheckPython(const spec::Environment& environment, const fs::path& folder,
                         base::Deadline deadline, std::vector<std::string>& warnings) {
  std::vector<PythonRequest> asked;
  Collect(environment, asked);
  return Check(asked, folder, deadline, warnings);
}

absl::Status CheckPythons(const spec::JobSpec& job, const fs::path& folder, base::Deadline deadline,
                          std::vector<std::string>& warnings) {
  std::vector<PythonRequest> asked;
  Collect(job, asked);
  return Check(asked, folder, deadline, warnings);
}

}  // namespace tutti::container
