// Brings events and output to the service, on two threads, so that an exit is never queued behind
// gigabytes of output. Sends as soon as there is something; what comes while a call is under way
// goes with the next. Nothing counts as delivered before the service has acknowledged it; after an
// outage of either side it goes on where the service says it is. Thread-safe.
#pragma once

#include <atomic>
#include <thread>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "platform/launch/event_log.h"
#include "platform/launch/service_link.h"
#include "platform/launch/spool.h"
#include "platform/launch/wakeup.h"

namespace tutti::launch {

class Delivery {
 public:
  // All outlive the object. `news` is notified when something was acknowledged, when the service
  // says go and when it no longer knows the allocation.
  Delivery(const spec::LaunchPlan& plan, EventLog* events, Spool* spool, Wakeup* news);
  ~Delivery();

  // There is new output in the spool.
  void Wake() { output_wake_.Notify(); }

  bool go() const { return go_; }
  // The service answered 410: there is nothing to deliver to.
  bool gone() const { return gone_; }

  // Aborted when gone; DeadlineExceeded.
  absl::Status AwaitOutput(base::Deadline deadline);
  absl::Status AwaitEvents(base::Deadline deadline);

 private:
  void DeliverEvents();
  absl::Status SendEvents(int64_t acknowledged);
  void DeliverOutput();
  // True if something was sent.
  absl::StatusOr<bool> SendOutput(SpoolFile& file);
  void AwaitNewOutput(int inotify);
  // False if the thread is to end.
  bool Continue(const absl::Status& status, ServiceLink& link);
  absl::Status Await(base::Deadline deadline, const absl::Condition& condition);
  void AwaitGo();

  EventLog* const events_;
  Spool* const spool_;
  Wakeup* const news_;
  ServiceLink event_link_;
  ServiceLink output_link_;
  ServiceLink go_link_;
  Wakeup output_wake_;
  std::atomic<bool> go_ = false;
  std::atomic<bool> gone_ = false;
  std::atomic<bool> ending_ = false;
  absl::Mutex mutex_;
  int64_t events_acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread event_thread_, output_thread_;
  std::thread go_thread_;  // none where there is no other node to wait for
};

}  // namespace tutti::launch
