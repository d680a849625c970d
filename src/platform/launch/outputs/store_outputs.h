// StoreOutputs brings the outputs of a job that have a place in a store there: what is finished
// while the job runs, by a thread of its own, and the rest when its processes have ended, again and
// again until it is there. It says what keeps it from that in the job's events.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/threads/retry_pause.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/store_patience.h"
#include "platform/launch/node/storing.h"
#include "platform/launch/outputs/output_store.h"

namespace tutti::launch {

// Returns whether the job has an output that is to be brought to a store.
bool HasStoredOutputs(const spec::LaunchPlan& plan);

// Tests make these times short.
struct StoreTimes {
  absl::Duration between_looks = absl::Seconds(5);  // at the folders, while the job runs
  StorePatience patience = {};  // its limit: from the end of the processes on; of one put before
};

// Thread-compatible.
class StoreOutputs {
 public:
  // `plan` and `events` outlive it, as what `parts` refer to.
  static absl::StatusOr<std::unique_ptr<StoreOutputs>> Open(const spec::LaunchPlan& plan,
                                                            const StoreParts& parts,
                                                            EventLog* events, StoreTimes times);
  // Ends a put that is under way.
  ~StoreOutputs();

  // Returns whether all can be put, as far as that is known without their stores.
  absl::Status Check();
  // Begins to put what is finished, before the first process of the job starts. A failure is
  // logged, and tried again; that of one store keeps no other from its turn.
  void Begin();
  // Puts what is there, once no process writes any more. kUntilThere: failures are waited out, but
  // for those that no time mends, until the limit. The error is a line for the job's user, with
  // what is not in its store. Cancelled once `cancelled` is set.
  absl::Status Finish(Storing how, const std::atomic<bool>& cancelled);

  // Writes the manifest of each output, NAME.node-N.json, into `folder`; returns the files. The
  // last Finish says whether they are whole.
  std::vector<std::filesystem::path> WriteManifests(const std::filesystem::path& folder) const;

 private:
  // Turn says when a store that fails while the job runs is tried again.
  struct Turn {
    base::RetryPause pause;
    absl::Duration next = absl::ZeroDuration();
  };

  StoreOutputs(const spec::LaunchPlan& plan, const StoreParts& parts, EventLog* events,
               StoreTimes times)
      : plan_(plan), parts_(parts), events_(events), times_(times) {}
  void PutWhileItRuns();
  void PutTurn(std::vector<Turn>& turns);
  void NoteAliveWhileItRuns();
  void NoteAlive() const;
  absl::Time UnfinishedSince() const;
  void EndThread();
  void AwaitThread(const PutLimits& limits);
  // Puts into each of `left` once, and leaves those in it that are to be tried again; their first
  // failure is returned. What is given up is added to `lost`.
  absl::Status PutRound(Storing how, const PutLimits& limits, std::vector<OutputStore*>& left,
                        absl::Status& lost);
  // Tells why the job is not over, if that has changed.
  void Say(const std::string& reason);
  void SayFailure(const absl::Status& failure);

  const spec::LaunchPlan& plan_;
  const StoreParts parts_;
  EventLog* const events_;
  const StoreTimes times_;
  std::vector<OutputStore> stores_;  // of the thread while it runs
  std::thread thread_, alive_;
  absl::Mutex mutex_;
  bool processes_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> abandoned_ = false;  // what the thread puts
  bool is_whole_ = false;
  std::string said_;
  absl::Duration failure_said_ = -absl::InfiniteDuration();
};

}  // namespace tutti::launch
