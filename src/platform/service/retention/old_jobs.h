// OldJobs lists and removes logs and results of jobs that have ended: of a pipeline or a sweep with
// those of all of its jobs. The job itself stays, and says since when they are gone. Each folder is
// renamed, to a name that says of which job it was; then the store notes that it is gone; then it
// is removed. A crash leaves it under its own name, or so that Resume goes on. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/retention/in_use.h"
#include "platform/service/retention/removal.h"

namespace tutti::service {

class OldJobs {
 public:
  OldJobs(SharedState& state, const JobTable& table) : state_(state), table_(table) {}

  // Lists the jobs that have files of that kind, and that `limit` may concern. Reads folders.
  absl::StatusOr<std::vector<Kept>> List(KeptKind kind, const spec::KeepFor& limit,
                                         const InUse& in_use) const;
  // Removes it; false if one of them has become an input meanwhile, has been used, or has been
  // deleted.
  absl::StatusOr<bool> Remove(const Kept& kept) const;
  // Looks for the folder of all jobs, and so hangs if it does.
  void Ask() const;
  // Finishes what could not be finished before, by this service or the one before it.
  void Resume() const;

 private:
  absl::StatusOr<bool> RemoveTree(const Kept& kept) const;
  absl::Status Retire(KeptKind kind, const std::vector<std::string>& jobs) const;
  void NoteGone(const std::vector<std::string>& jobs) const ABSL_LOCKS_EXCLUDED(service_lock);
  void Announce(const std::vector<std::string>& jobs) const ABSL_LOCKS_EXCLUDED(service_lock);
  void Withdraw(const std::vector<std::string>& jobs) const ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns when files of that kind were used last, by the mark of their folders.
  absl::Time LastUse(KeptKind kind, const std::vector<std::string>& jobs) const;
  absl::Status Finish(KeptKind kind, const std::vector<std::string>& jobs) const;
  void NoteLeft(const std::string& job, const absl::Status& removed) const;
  absl::StatusOr<std::set<std::string>> JobsThatOwe(KeptKind kind) const;
  absl::StatusOr<Kept> KeptOf(KeptKind kind, const store::EndedJob& job, const InUse& in_use,
                              const std::set<std::string>& owed) const;

  SharedState& state_;
  const JobTable& table_;
  mutable absl::Mutex mutex_;
  // The sizes in bytes of ended jobs together with the jobs below them, which do not change any
  // more.
  mutable std::map<std::pair<KeptKind, std::string>, uint64_t> bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service
