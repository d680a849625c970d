// Pruner removes what the site keeps no longer: what `retention` in site.yml says, as it is at that
// time, for this machine and for each cluster's folder. Now and then by a thread of its own, which
// nobody waits for, and when a user asks. One thing after another, each in a step that a crash
// leaves done or undone. The folders of this machine and of each cluster are read and written by a
// queue of their own, and those of a place that does not answer are left for the next look.
// Thread-safe.
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
#include "platform/service/secrets/secrets.h"

namespace tutti::service {

class Pruner {
 public:
  Pruner(SharedState& state, const JobTable& table, Secrets& secrets)
      : state_(state),
        table_(table),
        secrets_(secrets),
        here_(std::make_shared<const Place>(state)),
        jobs_(state, table) {}
  ~Pruner() { Stop(); }

  // Does what Service::Prune does.
  absl::StatusOr<std::vector<Removal>> Prune(const Pruning& how) ABSL_LOCKS_EXCLUDED(service_lock);
  void Run();
  // Lets what is at hand go on to the end of its step. SharedState::ending is set.
  void Stop();

 private:
  // Finds what lies in one folder and can be had again.
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
  using Places = std::map<std::string, std::shared_ptr<const Place>>;  // by compute; "": here

  absl::StatusOr<std::vector<Removal>> ToRemoveOf(const spec::Retention& keep)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  // Lists what lies there. Nothing if it does not answer any more.
  absl::StatusOr<std::vector<Kept>> ListAt(const std::string& name,
                                           const std::shared_ptr<const Place>& place,
                                           const spec::Retention& keep, const InUse& in_use);
  // Adds what jobs have left, on this machine.
  absl::StatusOr<std::vector<Kept>> WithJobs(std::vector<Kept> kept, const spec::Retention& keep,
                                             const InUse& in_use) const;
  // OK if the wall's clock may say what is old.
  absl::Status CheckClockNow(bool is_right) const;
  // Finds the places whose folders answer now.
  void FindPlaces() ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  bool Answers(const std::string& name, const std::shared_ptr<const Place>& place);
  // Returns OK, or why a folder of that place is known not to answer.
  absl::Status CheckFolders(const std::string& place) const;
  // Has that place's queue do it; false, noted as a problem, if it is not done within `patience` or
  // a folder of the place is away. It may be done later all the same.
  bool DoWithin(const std::string& place, absl::Duration patience, std::function<void()> work)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Finishes there what a service before this one had begun.
  void Resume(const std::string& name, const std::shared_ptr<const Place>& place);
  absl::StatusOr<bool> RemoveWhereItLies(const Kept& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  // Returns whether it is gone.
  bool Remove(const Removal& removal) ABSL_LOCKS_EXCLUDED(service_lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_);
  void Loop();

  SharedState& state_;
  const JobTable& table_;
  Secrets& secrets_;
  const std::shared_ptr<const Place> here_;
  const OldJobs jobs_;
  absl::Mutex one_at_a_time_;
  Places clusters_ ABSL_GUARDED_BY(one_at_a_time_);
  Places places_ ABSL_GUARDED_BY(one_at_a_time_);  // that answered at the last look
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::service
