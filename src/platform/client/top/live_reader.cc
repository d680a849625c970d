#include "platform/client/top/live_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/clock.h"

namespace tutti::client {

LiveReader::LiveReader(Connect connect, std::string open, absl::Duration interval,
                       std::function<void()> on_news)
    : connect_(std::move(connect)),
      interval_(interval),
      on_news_(std::move(on_news)),
      open_(std::move(open)),
      thread_([this] { Run(); }) {}

LiveReader::~LiveReader() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (calling_ != nullptr) calling_->Interrupt();
  }
  thread_.join();
}

void LiveReader::Open(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  open_ = job;
}

std::optional<absl::StatusOr<LiveView>> LiveReader::Take() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(news_, std::nullopt);
}

void LiveReader::Run() {
  while (true) {
    std::string job;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      job = open_;
      // A connection that has failed is not used again: the service may come back elsewhere.
      if (service_ == nullptr) service_ = std::make_unique<ServiceClient>(connect_());
      calling_ = service_.get();
    }
    const absl::Time begin = absl::Now();
    absl::StatusOr<LiveView> view = Ask(job);
    const absl::Duration took = absl::Now() - begin;
    {
      absl::MutexLock lock(&mutex_);
      calling_ = nullptr;
      if (stopping_) return;
      if (!view.ok()) service_ = nullptr;
      if (job == open_) news_ = std::move(view);
    }
    on_news_();
    if (!Pause(std::max(interval_, took), job)) return;
  }
}

absl::StatusOr<LiveView> LiveReader::Ask(const std::string& job) {
  if (!job.empty()) return AskForJob(*service_, job);
  absl::StatusOr<LiveView> all = AskForAll(*service_, all_);
  if (all.ok()) all_ = *all;
  return all;
}

// Ends early where another job was opened than `job`; false once the reader has gone.
bool LiveReader::Pause(absl::Duration pause, const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || open_ != job;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_over), pause);
  return !stopping_;
}

}  // namespace tutti::client
