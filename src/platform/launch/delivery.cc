#include "platform/launch/delivery.h"

#include <poll.h>
#include <sys/inotify.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr size_t kBatch = 1 << 20;
constexpr absl::Duration kNoDeadline = absl::Hours(24 * 365);  // the launcher's own ends it

template <class T>
absl::StatusOr<T> Field(const http::ClientResponse& response, const char* name) {
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (!json.is_object() || !json.contains(name) || !json[name].is_number_integer()) {
    return absl::InternalError(absl::StrCat("the service's answer has no \"", name, "\""));
  }
  return json[name].get<T>();
}

bool SaysGo(const http::ClientResponse& response) {
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  return json.is_object() && json.contains("go") && json["go"] == true;
}

}  // namespace

Delivery::Delivery(const spec::LaunchPlan& plan, EventLog* events, Spool* spool, Wakeup* news)
    : events_(events),
      spool_(spool),
      news_(news),
      event_link_(plan),
      output_link_(plan),
      go_link_(plan),
      event_thread_([this] { DeliverEvents(); }),
      output_thread_([this] { DeliverOutput(); }) {
  if (plan.nodes.size() > 1) go_thread_ = std::thread([this] { AwaitGo(); });
}

Delivery::~Delivery() {
  ending_ = true;
  events_->Interrupt();
  for (ServiceLink* link : {&event_link_, &output_link_, &go_link_}) link->Abandon();
  output_wake_.Notify();
  event_thread_.join();
  output_thread_.join();
  if (go_thread_.joinable()) go_thread_.join();
}

bool Delivery::Continue(const absl::Status& status, ServiceLink& link) {
  if (ending_ || absl::IsCancelled(status)) return false;
  if (absl::IsAborted(status)) {
    absl::MutexLock lock(&mutex_);
    gone_ = true;
    news_->Notify();
    return false;
  }
  if (!status.ok()) {
    link.SayOnce(status);
    link.PauseAfterFailure();
  }
  return true;
}

void Delivery::DeliverEvents() {
  int64_t acknowledged = 0;
  while (events_->AwaitMoreThan(acknowledged)) {
    if (!Continue(SendEvents(acknowledged), event_link_)) return;
    absl::MutexLock lock(&mutex_);
    acknowledged = events_acknowledged_;
  }
}

absl::Status Delivery::SendEvents(int64_t acknowledged) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = event_link_.Target(absl::StrCat("/events?first=", acknowledged + 1));
  request.body = events_->From(acknowledged + 1);
  request.content_type = "application/jsonl";
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response,
                         event_link_.Call(request, base::Deadline::After(kNoDeadline)));
  TUTTI_ASSIGN_OR_RETURN(const int64_t now, Field<int64_t>(response, "acknowledged"));
  if (SaysGo(response)) go_ = true;
  {
    absl::MutexLock lock(&mutex_);
    events_acknowledged_ = now;
  }
  news_->Notify();
  return now > acknowledged ? absl::OkStatus()
                            : absl::InternalError("the service took none of the events");
}

void Delivery::AwaitGo() {
  http::ClientRequest request;
  request.target = go_link_.Target("/go?wait=20");
  request.timeout = absl::Seconds(40);
  while (!go_ && !gone_) {
    const auto response = go_link_.Call(request, base::Deadline::After(kNoDeadline));
    if (!Continue(response.status(), go_link_)) return;
    if (!response.ok()) continue;
    if (SaysGo(*response)) go_ = true;
    // A service that answers "no" at once, since the job is to be stopped, is not asked all the
    // time.
    if (!go_) go_link_.Pause(absl::Milliseconds(100));
  }
  news_->Notify();
}

void Delivery::DeliverOutput() {
  // Tells of the metrics files, which the processes write by themselves.
  const base::UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  for (const auto& file : spool_->files()) {
    if (file->stream() == "metrics") {
      ::inotify_add_watch(inotify.get(), file->path().c_str(), IN_MODIFY);
    }
  }
  absl::Time saved = absl::Now();
  while (!ending_) {
    bool sent_any = false;
    for (const auto& file : spool_->files()) {
      const absl::StatusOr<bool> sent = SendOutput(*file);
      if (!Continue(sent.status(), output_link_)) return;
      sent_any |= !sent.ok() || *sent;
    }
    if (absl::Now() - saved > absl::Seconds(1)) {
      absl::MutexLock lock(&mutex_);
      spool_->SaveAcknowledged(events_acknowledged_);
      saved = absl::Now();
    }
    if (!sent_any) AwaitNewOutput(inotify.get());
  }
}

absl::StatusOr<bool> Delivery::SendOutput(SpoolFile& file) {
  const uint64_t offset = file.acknowledged();
  if (file.Backlog() == 0) return false;
  http::ClientRequest request;
  request.method = "POST";
  request.target = output_link_.Target(
      absl::StrCat("/output?rank=", file.rank(), "&stream=", file.stream(), "&offset=", offset));
  request.content_type = "application/octet-stream";
  TUTTI_ASSIGN_OR_RETURN(request.body, file.Read(offset, kBatch));
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response,
                         output_link_.Call(request, base::Deadline::After(kNoDeadline)));
  TUTTI_ASSIGN_OR_RETURN(const uint64_t now, Field<uint64_t>(response, "acknowledged"));
  {
    absl::MutexLock lock(&mutex_);  // AwaitOutput looks again when it is released
    file.Acknowledge(std::min(now, file.Size()));
  }
  news_->Notify();
  if (now == offset) return absl::InternalError("the service took none of the output");
  return true;
}

void Delivery::AwaitNewOutput(int inotify) {
  pollfd waiting[2] = {{output_wake_.fd(), POLLIN, 0}, {inotify, POLLIN, 0}};
  ::poll(waiting, 2, 1000);  // once a second also without a sign: a metrics file on a network disk
  output_wake_.Clear();
  alignas(inotify_event) char events[4096];
  while (::read(inotify, events, sizeof events) > 0) {
  }
}

absl::Status Delivery::Await(base::Deadline deadline, const absl::Condition& condition) {
  if (!mutex_.AwaitWithTimeout(condition, deadline.Remaining())) {
    return absl::DeadlineExceededError("the service has not acknowledged everything");
  }
  return gone_ ? absl::AbortedError("the service does not know this allocation") : absl::OkStatus();
}

absl::Status Delivery::AwaitOutput(base::Deadline deadline) {
  Wake();
  absl::MutexLock lock(&mutex_);
  const auto done = [this] { return gone_ || spool_->Backlog() == 0; };
  return Await(deadline, absl::Condition(&done));
}

absl::Status Delivery::AwaitEvents(base::Deadline deadline) {
  absl::MutexLock lock(&mutex_);
  const auto done = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return gone_ || events_acknowledged_ >= events_->size();
  };
  return Await(deadline, absl::Condition(&done));
}

}  // namespace tutti::launch
