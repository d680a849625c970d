// Pruner removes what the site keeps no longer: what `retention` in site.yml says, as it is at that
// time, for this machine and for each cluster's folder. Now and then by a thread of its own, which
// nobody waits for, and when a user asks. One thing after another, each in a step that a crash
// leaves done or undone. A cluster's folder is read and written by a queue of its own, and what
// does not answer is left for the next look. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/retention/caches.h"
#include "platform/service/retention/images.h"
#include "platform/service/retention/old_jobs.h"
#include "platform/service/retention/removal.h"

namespace tutti::service {

class Pruner {
 public:
  Pruner(SharedState& state, const JobTable& table)
      : state_(state), table_(table), here_(state), jobs_(state, table) {}
  ~Pruner() { Stop(); }

  // Does what Service::Prune does.
  absl::StatusOr<std::vector<Removal>> Prune(bool dry_run) ABSL_LOCKS_EXCLUDED(service_lock);
  void Run();
  // Lets what is at hand go on to the end of its step. SharedState::ending is set.
  void Stop();

 private:
  // What lies in one folder and can be had again.
  struct Place {
    explicit Place(SharedState& state) : caches(state), images(state) {}
    Place(SharedState& state, const std::string& compute, const std::filesystem::path& root)
        : caches(state, compute, root), images(state, compute, root) {}
    const Caches caches;
    const Images images;
    // Returns all of the kinds that have a limit.
    std::vector<Kept> List(const spec::Retention& keep, const InUse& in_use) const;
    absl::StatusOr<bool> Remove(const Kept& kept) const;
  };
  using Clusters = std::map<std::string, std::shared_ptr<const Place>>;  // by compute

  absl::StatusOr<std::vector<Removal>> ToRemoveOf(const spec::Retention& keep)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  // Returns those whose folders can be used now.
  const Clusters& ClustersNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  // Has that compute's queue do it; false, noted as a problem, if it is not done within a minute.
  // It may be done later all the same.
  bool DoWithin(const std::string& compute, std::function<void()> work)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<bool> RemoveWhereItLies(const Kept& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  // Returns whether it is gone.
  bool Remove(const Removal& removal) ABSL_LOCKS_EXCLUDED(service_lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  void Loop();

  SharedState& state_;
  const JobTable& table_;
  const Place here_;
  const OldJobs jobs_;
  absl::Mutex one_at_a_time_;
  Clusters clusters_ ABSL_GUARDED_BY(one_at_a_time_);
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::service
