#include "platform/launch/interruptible.h"

#include <poll.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "absl/time/clock.h"
#include "platform/launch/delivery/service_link.h"
#include "platform/launch/environment/slurm_placement.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kLookWithoutNews = absl::Seconds(1);  // also without news

}  // namespace

absl::Status Interruptible::WhyStopped() {
  NoteStopRequest(plan_.directory);
  const absl::Status why = ReasonOfStopRequest(plan_.directory, absl::Now());
  if (absl::IsDeadlineExceeded(why)) return why;
  events_->Append("unlaunched", nlohmann::json::object());
  return absl::CancelledError("stopped before its processes began");
}

absl::Status Interruptible::Await(const std::function<bool()>& ready, base::Deadline deadline) {
  while (true) {
    if (signals_->Take()) return WhyStopped();
    if (delivery_->gone()) return absl::AbortedError(kNobodyWaits);
    if (ready()) return absl::OkStatus();
    if (deadline.Expired()) {
      return absl::DeadlineExceededError("the other nodes of the job did not get ready in time");
    }
    pollfd waiting[2] = {{signals_->fd(), POLLIN, 0}, {news_->fd(), POLLIN, 0}};
    const base::Deadline look = base::Deadline::After(kLookWithoutNews);
    ::poll(waiting, 2, base::Deadline::Sooner(look, deadline).RemainingMillis());
    news_->Clear();
  }
}

absl::Status Interruptible::Run(
    const std::function<absl::Status(const std::atomic<bool>& cancelled)>& work,
    const std::function<void()>& abandon, base::Deadline deadline) {
  std::atomic<bool> cancelled = false, done = false;
  absl::Status result;
  std::thread thread([&] {
    result = work(cancelled);
    done = true;
    news_->Notify();
  });
  const absl::Status waited = Await([&done] { return done.load(); }, deadline);
  if (!waited.ok()) {
    cancelled = true;
    abandon();
  }
  thread.join();
  return waited.ok() ? result : waited;
}

absl::Status Interruptible::RunLast(
    const std::function<absl::Status(const std::atomic<bool>& cancelled)>& work,
    const std::function<void()>& abandon, base::Deadline deadline, absl::Duration after_stop) {
  std::atomic<bool> cancelled = false, done = false;
  absl::Status result;
  std::thread thread([&] {
    result = work(cancelled);
    done = true;
    news_->Notify();
  });
  bool stopped = false;
  while (!done && !delivery_->gone() && !deadline.Expired()) {
    pollfd waiting[2] = {{signals_->fd(), POLLIN, 0}, {news_->fd(), POLLIN, 0}};
    const base::Deadline look = base::Deadline::After(kLookWithoutNews);
    ::poll(waiting, 2, base::Deadline::Sooner(look, deadline).RemainingMillis());
    news_->Clear();
    if (!signals_->Take() || stopped) continue;
    stopped = true;
    NoteStopRequest(plan_.directory);
    deadline = base::Deadline::Sooner(deadline, base::Deadline::After(after_stop));
  }
  if (!done) {
    cancelled = true;
    abandon();
  }
  thread.join();
  if (delivery_->gone()) return absl::AbortedError(kNobodyWaits);
  if (!stopped && absl::IsCancelled(result)) return absl::DeadlineExceededError(result.message());
  if (result.ok() || !stopped) return result;
  const absl::Status why = ReasonOfStopRequest(plan_.directory, absl::Now());
  return why.ok() ? absl::CancelledError(result.message()) : why;
}

}  // namespace tutti::launch
