// Delivery brings a launcher's events, output and results to the service, and the service's answers
// back. Nothing counts as delivered before the service has acknowledged it; after an outage of
// either side it goes on where the service says it is. Two ways: over HTTP (service_delivery.h), or
// by the allocation's folder, where a collector beside the service fetches it (folder_delivery.h).
// Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/secret_masks.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/node/wakeup.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

class Delivery {
 public:
  // Makes the delivery that the plan says. All arguments outlive it. `news` is notified when
  // something was acknowledged, when the service says go and when it no longer knows the
  // allocation.
  static absl::StatusOr<std::unique_ptr<Delivery>> Make(const spec::LaunchPlan& plan,
                                                        EventLog* events, Spool* spool,
                                                        Wakeup* news);
  virtual ~Delivery() = default;

  // Starts to deliver what there is and what comes. Before, nothing takes a processor from a
  // process that is about to start. At most the first call counts; by the launcher's own thread.
  virtual void Begin() = 0;

  // Tells that there is new output in the spool.
  virtual void Wake() {}

  bool go() const { return go_; }
  // Returns whether the service does not know the allocation, or nobody waits (ServiceLink): there
  // is nothing to deliver to.
  bool gone() const { return gone_; }
  // Returns whether the service, by its last answer, tells the launchers to end because the job's
  // chief has ended well: nobody waits for their processes, and their outputs count.
  bool served() const { return served_; }

  // Returns where the archive of the job's code lies now: `file`, which is the caller's to remove,
  // or a place that is not. Aborted when gone; Cancelled after AbandonCode.
  virtual absl::StatusOr<std::filesystem::path> FetchCode(const std::filesystem::path& file) = 0;
  // Fetches a snapshot of the service's, "sha256:…", into `file`; the bytes have that hash. Errors
  // as of FetchCode; FailedPrecondition where the node does not reach the service.
  virtual absl::Status FetchProgram(const std::string& snapshot,
                                    const std::filesystem::path& file) = 0;
  // Also ends FetchProgram and FetchSecrets.
  virtual void AbandonCode() = 0;
  // Fetches the values of the secrets that the plan names from the service, and waits for one that
  // is away. Returns the service's own error if it does not give them; Aborted when gone; Cancelled
  // after AbandonCode.
  virtual absl::StatusOr<SecretValues> FetchSecrets() = 0;
  // Returns when the service has them all; as UploadResults.
  virtual absl::Status SendResults(const std::vector<Result>& files, base::Deadline deadline) = 0;

  // Wait until the service has all output, of which no more comes, or all events; both call Begin.
  // Aborted when gone; DeadlineExceeded.
  absl::Status AwaitOutput(base::Deadline deadline);
  absl::Status AwaitEvents(base::Deadline deadline);

 protected:
  Delivery(EventLog* events, Spool* spool, Wakeup* news)
      : events_(events), spool_(spool), news_(news) {}

  EventLog* const events_;
  Spool* const spool_;
  Wakeup* const news_;
  std::atomic<bool> go_ = false;
  std::atomic<bool> gone_ = false;
  std::atomic<bool> served_ = false;
  std::atomic<bool> is_whole_ = false;  // no more output comes
  absl::Mutex mutex_;
  int64_t events_acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;

 private:
  absl::Status Await(base::Deadline deadline, const absl::Condition& condition);
};

}  // namespace tutti::launch
