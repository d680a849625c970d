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
#include "platform/launch/node/event_log.h"
#include "platform/launch/outputs/output_store.h"

namespace tutti::launch {

// Returns whether the job has an output that is to be brought to a store.
bool HasStoredOutputs(const spec::LaunchPlan& plan);

// What tests make short.
struct StoreTimes {
  absl::Duration between_looks = absl::Seconds(5);  // at the folders, while the job runs
  absl::Duration first_pause = absl::Seconds(1);    // after a failure
  absl::Duration longest_pause = absl::Minutes(1);
  absl::Duration limit = absl::Hours(24);  // from the end of the processes on
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
  // Begins to put what is finished. A failure is logged, and tried again.
  void Begin();
  // Puts all that is there, once no process writes any more. With `again` failures are waited out,
  // but for those that no time mends, until the limit. The error is a line for the job's user.
  // Cancelled once `cancelled` is set.
  absl::Status Finish(bool again, const std::atomic<bool>& cancelled);

  // Writes the manifest of each output, NAME.node-N.json, into `folder`; returns the files. The
  // last Finish says whether they are whole.
  std::vector<std::filesystem::path> WriteManifests(const std::filesystem::path& folder) const;

 private:
  StoreOutputs(const spec::LaunchPlan& plan, EventLog* events, StoreTimes times)
      : plan_(plan), events_(events), times_(times) {}
  void PutWhileItRuns();
  void EndThread();
  void AwaitThread(const std::atomic<bool>& cancelled);
  absl::Status FinishOne(OutputStore& store, bool again, base::Deadline end,
                         const std::atomic<bool>& cancelled);
  // Tells why the job is not over, if that has changed.
  void Say(const std::string& reason);

  const spec::LaunchPlan& plan_;
  EventLog* const events_;
  const StoreTimes times_;
  std::vector<OutputStore> stores_;  // of the thread while it runs
  std::thread thread_;
  absl::Mutex mutex_;
  bool processes_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> abandoned_ = false;  // what the thread puts
  bool is_whole_ = false;
  std::string said_;
  absl::Duration failure_said_ = -absl::InfiniteDuration();
};

}  // namespace tutti::launch
