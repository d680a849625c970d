// RemotePaths lets submissions look at the files that they name, of which some may lie on a server
// that is away: who looks there hangs, and its call holds one of the service's few threads for
// calls that take long. So each mount that is not this machine's own is asked first (FolderWatch),
// then the path, by a thread that nobody waits for longer than five seconds, and four calls at a
// time are let in. The others are refused, as for a server that is away. Thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/machine/mounts.h"
#include "base/threads/work_queues.h"
#include "platform/service/folders/folder_watch.h"
#include "spec/types/job.h"

namespace tutti::service {

class RemotePaths {
 public:
  static constexpr int kMostVisits = 4;  // of a mount at a time

  // `looks` has a queue for each mount.
  RemotePaths(FolderWatch& folders, base::WorkQueues& looks) : folders_(folders), looks_(looks) {}

  // A caller's leave to look at its paths, until it goes.
  class Visit {
   public:
    Visit(RemotePaths* paths, std::set<std::string> mounts)
        : paths_(paths), mounts_(std::move(mounts)) {}
    Visit(Visit&& other) noexcept
        : paths_(std::exchange(other.paths_, nullptr)), mounts_(std::move(other.mounts_)) {}
    Visit& operator=(Visit&&) = delete;
    ~Visit() {
      if (paths_ != nullptr) paths_->End(mounts_);
    }

   private:
    RemotePaths* paths_;
    std::set<std::string> mounts_;
  };

  // Waits until each mount that these absolute paths lie on answers or is known to be away, and
  // three seconds until so few others look there. Unavailable names the one that does not answer.
  absl::StatusOr<Visit> Begin(const std::set<std::string>& paths,
                              const std::vector<base::Mount>& mounts);
  absl::StatusOr<Visit> Begin(const std::set<std::string>& paths) {
    return Begin(paths, *mounts_.Now());
  }

 private:
  absl::Status Ask(const std::string& mount, const std::string& path);
  void End(const std::set<std::string>& mounts) ABSL_LOCKS_EXCLUDED(mutex_);

  FolderWatch& folders_;
  base::WorkQueues& looks_;
  base::WatchedMounts mounts_;
  absl::Mutex mutex_;
  std::map<std::string, int> visits_ ABSL_GUARDED_BY(mutex_);  // by mount
};

// Returns the paths that Preflight looks at for the job and those below it.
std::set<std::string> PathsOf(const spec::JobSpec& job);

}  // namespace tutti::service
