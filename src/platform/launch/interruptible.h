// Interruptible runs the waits and the work before a node's processes run, and the last work after
// them; all end when the launcher is told to end or the service no longer knows the allocation. By
// the launcher's own thread.
#pragma once

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/signals.h"
#include "platform/launch/node/wakeup.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

class Interruptible {
 public:
  using Work = std::function<absl::Status(const std::atomic<bool>& cancelled)>;

  // All outlive the object.
  Interruptible(const spec::LaunchPlan& plan, EventLog* events, Delivery* delivery,
                Signals* signals, Wakeup* news)
      : plan_(plan), events_(events), delivery_(delivery), signals_(signals), news_(news) {}

  // Waits until `ready` holds, which is looked at whenever there is news, and each second.
  // Cancelled on a signal, Aborted when the service does not know the allocation, DeadlineExceeded.
  absl::Status Await(const std::function<bool()>& ready, base::Deadline deadline);

  // Does `work` on a thread of its own until it ends. When the wait for it ends otherwise,
  // `cancelled` is set and `abandon` called, by this thread; errors as of Await.
  absl::Status Run(const Work& work, const std::function<void()>& abandon, base::Deadline deadline);

  // Does the last work of a launcher on a thread of its own. Once the launcher is told to end,
  // before or meanwhile, and the service has answered to that, it has `after_stop` more, but for
  // one whose job's chief has ended well (Delivery::served), which goes on; `cancelled` is set at
  // the end of that, or of `deadline`, or when the service does not know the allocation; then
  // `abandon` is called. Returns what `work` does; Cancelled, or why it was told, with what `work`
  // says, if it has not come to its end for that; DeadlineExceeded.
  absl::Status RunLast(const Work& work, const std::function<void()>& abandon,
                       base::Deadline deadline, absl::Duration after_stop, bool was_told);

 private:
  absl::Status WhyStopped();

  const spec::LaunchPlan& plan_;
  EventLog* const events_;
  Delivery* const delivery_;
  Signals* const signals_;
  Wakeup* const news_;
};

}  // namespace tutti::launch
