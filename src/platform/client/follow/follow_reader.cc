#include "platform/client/follow/follow_reader.h"

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "base/threads/retry_pause.h"
#include "platform/client/connection/outage.h"

namespace tutti::client {
namespace {

constexpr size_t kMostItems = 10'000;

}  // namespace

FollowReader::FollowReader(Connect connect, std::string job, FollowReaderOptions options)
    : connect_(std::move(connect)),
      job_(std::move(job)),
      options_(std::move(options)),
      cursor_(options_.cursor),
      thread_([this] { Run(); }) {}

FollowReader::~FollowReader() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (calling_ != nullptr) calling_->Interrupt();
  }
  thread_.join();
}

std::optional<FollowItem> FollowReader::Next(base::Deadline deadline) {
  absl::MutexLock lock(&mutex_);
  const auto has_item = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !items_.empty(); };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&has_item), deadline.Remaining())) {
    return std::nullopt;
  }
  FollowItem item = std::move(items_.front());
  items_.pop_front();
  return item;
}

bool FollowReader::Push(FollowItem item) {
  absl::MutexLock lock(&mutex_);
  const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || items_.size() < kMostItems;
  };
  mutex_.Await(absl::Condition(&has_room));
  if (!stopping_) items_.push_back(std::move(item));
  return !stopping_;
}

bool FollowReader::Pause(absl::Duration pause) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopping_), pause);
  return !stopping_;
}

void FollowReader::Run() {
  base::RetryPause pause(options_.first_pause, options_.longest_pause);
  base::Deadline give_up = base::Deadline::After(options_.give_up_after);
  while (true) {
    got_line_ = false;
    absl::Status error;
    if (Once(error) != Attempt::kAgain) return;
    if (got_line_ || error.ok()) {
      pause.Reset();
      give_up = base::Deadline::After(options_.give_up_after);
    }
    if (give_up.Expired()) {
      Push({.kind = FollowItem::Kind::kFailed,
            .status = DidNotComeBack(error, options_.give_up_after)});
      return;
    }
    // Silence alone is no loss: the reader need not know that the connection was made anew.
    if (!lost_ && !error.ok() && !absl::IsDeadlineExceeded(error)) {
      lost_ = true;
      if (!Push({.kind = FollowItem::Kind::kLost, .status = error})) return;
    }
    if (!Pause(pause.Next())) return;
  }
}

FollowReader::Attempt FollowReader::Once(absl::Status& error) {
  ServiceClient service(connect_());
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return Attempt::kOver;
    calling_ = &service;
  }
  absl::Cleanup forget = [this] {
    absl::MutexLock lock(&mutex_);
    calling_ = nullptr;
  };
  error = service.Follow(job_, cursor_, options_.follow, options_.reports,
                         [this](absl::string_view text) { return OnLine(text); });
  if (absl::IsCancelled(error)) return Attempt::kOver;
  if (error.ok()) return AfterTheEnd(service, error);
  if (MayRecover(error)) return Attempt::kAgain;
  Push({.kind = FollowItem::Kind::kFailed, .status = error});
  return Attempt::kOver;
}

absl::Status FollowReader::OnLine(absl::string_view text) {
  if (text.empty()) return absl::OkStatus();  // the service says that it still lives
  TUTTI_ASSIGN_OR_RETURN(std::optional<FollowLine> line, ParseFollowLine(text));
  if (!line.has_value()) return absl::OkStatus();
  if (lost_) {
    lost_ = false;
    if (!Push({.kind = FollowItem::Kind::kBack})) return absl::CancelledError("stopped");
  }
  got_line_ = true;
  std::string cursor = line->cursor;
  if (!Push(
          {.kind = FollowItem::Kind::kLine, .line = *std::move(line), .raw = std::string(text)})) {
    return absl::CancelledError("stopped");
  }
  cursor_ = std::move(cursor);
  return absl::OkStatus();
}

// A stream that ended in good order has been sent whole if the job has ended; else the service is
// shutting down and the rest comes from its successor.
FollowReader::Attempt FollowReader::AfterTheEnd(ServiceClient& service, absl::Status& error) {
  if (!options_.follow) {
    Push({.kind = FollowItem::Kind::kEnded});
    return Attempt::kEnded;
  }
  const auto text = service.Job(job_);
  const auto job = text.ok() ? Parse<JobView>(*text) : text.status();
  if (!job.ok()) {
    error = job.status();
    if (MayRecover(error)) return Attempt::kAgain;
    Push({.kind = FollowItem::Kind::kFailed, .status = error});
    return Attempt::kOver;
  }
  if (!job->ended_already()) return Attempt::kAgain;
  Push({.kind = FollowItem::Kind::kEnded, .job = *job});
  return Attempt::kEnded;
}

}  // namespace tutti::client
