#include "platform/launch/interruptible.h"

#include <poll.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "platform/launch/delivery/service_link.h"
#include "platform/launch/environment/slurm_placement.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kLookWithoutNews = absl::Seconds(1);  // also without news

// Work that a thread of its own does; its end is news.
class Worker {
 public:
  Worker(const Interruptible::Work& work, Wakeup* news)
      : thread_([this, &work, news] {
          result_ = work(cancelled_);
          done_ = true;
          news->Notify();
        }) {}
  bool done() const { return done_; }
  void Cancel(const std::function<void()>& abandon) {
    cancelled_ = true;
    abandon();
  }
  // Waits for its end, and returns what came of it. To be called once.
  absl::Status Join() {
    thread_.join();
    return result_;
  }

 private:
  std::atomic<bool> cancelled_ = false, done_ = false;
  absl::Status result_;
  std::thread thread_;
};

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

absl::Status Interruptible::Run(const Work& work, const std::function<void()>& abandon,
                                base::Deadline deadline) {
  Worker worker(work, news_);
  const absl::Status waited = Await([&] { return worker.done(); }, deadline);
  if (!waited.ok()) worker.Cancel(abandon);
  absl::Status result = worker.Join();
  return waited.ok() ? result : waited;
}

absl::Status Interruptible::RunLast(const Work& work, const std::function<void()>& abandon,
                                    base::Deadline deadline, absl::Duration after_stop,
                                    bool was_told) {
  Worker worker(work, news_);
  bool is_told = was_told;
  std::optional<base::Deadline> stop;
  // A service that does not answer has not said that nobody waits for the work.
  const auto has_answered = [&] {
    return delivery_->AwaitEvents(base::Deadline::After(absl::ZeroDuration())).ok();
  };
  const auto stopped = [&] { return stop && !delivery_->served(); };
  while (!worker.done() && !delivery_->gone() && !deadline.Expired() &&
         !(stopped() && stop->Expired())) {
    pollfd waiting[2] = {{signals_->fd(), POLLIN, 0}, {news_->fd(), POLLIN, 0}};
    base::Deadline look = base::Deadline::Sooner(base::Deadline::After(kLookWithoutNews), deadline);
    if (stopped()) look = base::Deadline::Sooner(look, *stop);
    ::poll(waiting, 2, look.RemainingMillis());
    news_->Clear();
    if (signals_->Take()) {
      NoteStopRequest(plan_.directory);
      // The service's answer to it says whether the job is served.
      events_->Append("told", nlohmann::json::object());
      is_told = true;
    }
    if (is_told && !stopped() && has_answered() && !delivery_->served()) {
      stop = base::Deadline::After(after_stop);
    }
  }
  if (!worker.done()) worker.Cancel(abandon);
  const absl::Status result = worker.Join();
  if (delivery_->gone()) return absl::AbortedError(kNobodyWaits);
  if (!stopped() && absl::IsCancelled(result)) return absl::DeadlineExceededError(result.message());
  if (result.ok() || !stopped()) return result;
  const absl::Status why = ReasonOfStopRequest(plan_.directory, absl::Now());
  if (why.ok()) return absl::CancelledError(result.message());
  return absl::Status(why.code(), absl::StrCat(why.message(), "; ", result.message()));
}

}  // namespace tutti::launch
