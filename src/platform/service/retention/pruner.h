// Pruner removes what the site keeps no longer: what `retention` in site.yml says, as it is at that
// time. Now and then by a thread of its own, which nobody waits for, and when a user asks. One
// thing after another, each in a step that a crash leaves done or undone. Thread-safe.
#pragma once

#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/retention/caches.h"
#include "platform/service/retention/old_jobs.h"
#include "platform/service/retention/removal.h"

namespace tutti::service {

class Pruner {
 public:
  Pruner(SharedState& state, const JobTable& table)
      : state_(state), table_(table), caches_(state), jobs_(state, table) {}
  ~Pruner() { Stop(); }

  // Does what Service::Prune does.
  absl::StatusOr<std::vector<Removal>> Prune(bool dry_run) ABSL_LOCKS_EXCLUDED(service_lock);
  void Run();
  // Lets what is at hand go on to the end of its step. SharedState::ending is set.
  void Stop();

 private:
  absl::StatusOr<std::vector<Removal>> ToRemoveOf(const spec::Retention& keep);
  // Returns whether it is gone.
  bool Remove(const Removal& removal) ABSL_LOCKS_EXCLUDED(service_lock);
  void Loop();

  SharedState& state_;
  const JobTable& table_;
  const Caches caches_;
  const OldJobs jobs_;
  absl::Mutex one_at_a_time_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::service
