// Delivery brings a launcher's events, output and results to the service, and the service's answers
// back. Nothing counts as delivered before the service has acknowledged it; after an outage of
// either side it goes on where the service says it is. Two ways: over HTTP (service_delivery.h), or
// by the allocation's folder, where a collector beside the service fetches it (folder_delivery.h).
// Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "platform/launch/delivery/launcher_calls.h"
#include "platform/launch/delivery/patience.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/secret_masks.h"
#include "platform/launch/delivery/service_link.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/node/wakeup.h"
#include "spec/json/launch_plan.h"
#include "spec/json/question.h"

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

  // Returns whether samples of what the processes use are of use to anybody now.
  virtual bool WantsUsage() const { return false; }
  // Takes a sample of what the processes use (usage_sample.h), as a line, for the service. Waits
  // for nothing. What cannot be delivered is dropped: all else comes first.
  virtual void OfferUsage(std::string /*line*/) {}

  // Returns what the service asks now; from the first call on it is asked for that. Waits for
  // nothing: `news` is notified when there is more or less of it.
  virtual std::vector<spec::Question> OpenQuestions() { return {}; }
  // Takes the answer for a rank, which goes to the service if it still wants it.
  virtual void OfferAnswer(const std::string& /*question*/, int /*rank*/, std::string /*json*/) {}

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
  // Also ends FetchProgram, FetchSecrets and FetchRun.
  virtual void AbandonCode() = 0;
  // Fetches the values of the secrets that the plan names from the service, and waits for one that
  // is away. Returns the service's own error if it does not give them; Aborted when gone; Cancelled
  // after AbandonCode.
  virtual absl::StatusOr<SecretValues> FetchSecrets() = 0;
  // Has the service make the job's run in its MLflow tracking, and waits so long for one that is
  // away: then DeadlineExceeded. NotFound if it has no tracking; FailedPrecondition where the node
  // does not reach it; Aborted and Cancelled as of FetchSecrets.
  virtual absl::StatusOr<TrackedRun> FetchRun(base::Deadline deadline) = 0;
  // Returns a connection of its own to the service that asks (OpenQuestions), which depends on
  // nothing of this object.
  virtual std::shared_ptr<ServiceLink> NewLink() { return nullptr; }
  // Returns when the service has them all; as UploadResults.
  virtual absl::Status SendResults(const std::vector<Result>& files, Patience patience) = 0;

  // Wait until the service has all output, of which no more comes, or all events; both call Begin.
  // Aborted when gone; DeadlineExceeded.
  absl::Status AwaitOutput(Patience patience);
  absl::Status AwaitEvents(Patience patience);

 protected:
  enum class Stream { kOutput, kEvents, kResults };

  Delivery(EventLog* events, Spool* spool, Wakeup* news)
      : events_(events), spool_(spool), news_(news) {}

  // Returns when the service said last that it takes such later (ServiceLink::put_off), by
  // base::SteadyNow.
  virtual absl::Duration put_off(Stream stream) const = 0;
  // Returns whether the condition held in time.
  bool AwaitWithin(Patience patience, Stream stream, const absl::Condition& condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
  absl::Status Await(Patience patience, Stream stream, const absl::Condition& condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
};

}  // namespace tutti::launch
