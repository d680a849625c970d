#include "platform/launch/delivery/delivery.h"

#include <utility>

#include "base/status.h"
#include "platform/launch/delivery/folder_delivery.h"
#include "platform/launch/delivery/service_delivery.h"
#include "platform/launch/delivery/service_link.h"

namespace tutti::launch {

absl::StatusOr<std::unique_ptr<Delivery>> Delivery::Make(const spec::LaunchPlan& plan,
                                                         EventLog* events, Spool* spool,
                                                         Wakeup* news) {
  if (plan.service_file.empty()) {
    return std::make_unique<FolderDelivery>(plan, events, spool, news);
  }
  TUTTI_ASSIGN_OR_RETURN(Wakeup output_wake, Wakeup::Make());
  return std::make_unique<ServiceDelivery>(plan, events, spool, news, std::move(output_wake));
}

bool Delivery::AwaitWithin(Patience patience, Stream stream, const absl::Condition& condition) {
  while (true) {
    const base::Deadline end = patience.EndAfter(put_off(stream));
    if (mutex_.AwaitWithTimeout(condition, end.Remaining())) return true;
    if (patience.EndAfter(put_off(stream)).Expired()) return false;
  }
}

absl::Status Delivery::Await(Patience patience, Stream stream, const absl::Condition& condition) {
  if (!AwaitWithin(patience, stream, condition)) {
    return absl::DeadlineExceededError("the service has not acknowledged everything");
  }
  return gone_ ? absl::AbortedError(kNobodyWaits) : absl::OkStatus();
}

absl::Status Delivery::AwaitOutput(Patience patience) {
  is_whole_ = true;
  Begin();
  Wake();
  absl::MutexLock lock(&mutex_);
  const auto done = [this] { return gone_ || spool_->Backlog() == 0; };
  return Await(patience, Stream::kOutput, absl::Condition(&done));
}

absl::Status Delivery::AwaitEvents(Patience patience) {
  Begin();
  absl::MutexLock lock(&mutex_);
  const auto done = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return gone_ || events_acknowledged_ >= events_->size();
  };
  return Await(patience, Stream::kEvents, absl::Condition(&done));
}

}  // namespace tutti::launch
