#include "platform/tracking/store/log_queue.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "base/threads/start_thread.h"

namespace tutti::tracking {
namespace {

constexpr size_t kMostRowsTogether = 20'000;  // some hundred milliseconds
constexpr size_t kMostBytesWaiting = size_t{64} << 20;

size_t RowsOf(const Batch& batch) {
  return 1 + batch.metrics.size() + batch.params.size() + batch.tags.size();
}

size_t BytesOfTexts(const std::vector<KeyValue>& texts) {
  size_t bytes = 0;
  for (const KeyValue& text : texts) bytes += sizeof text + text.key.size() + text.value.size();
  return bytes;
}

size_t BytesOf(const Batch& batch) {
  size_t bytes = sizeof batch + BytesOfTexts(batch.params) + BytesOfTexts(batch.tags);
  for (const Metric& metric : batch.metrics) {
    bytes += sizeof metric + metric.key.size() + metric.model.size() + metric.dataset_name.size() +
             metric.dataset_digest.size();
  }
  return bytes;
}

}  // namespace

std::optional<absl::Status> LogQueue::Pending::result() const {
  absl::MutexLock lock(&mutex_);
  return result_;
}

LogQueue::LogQueue(TrackingStore* store) : store_(store) {
  thread_ = base::StartThread([this] { Work(); });
}

LogQueue::~LogQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::shared_ptr<const LogQueue::Pending>> LogQueue::Add(std::string run, Batch batch,
                                                                       std::function<void()> wake) {
  TUTTI_RETURN_IF_ERROR(CheckBatch(batch));
  auto pending = std::make_shared<Pending>();
  const size_t bytes = BytesOf(batch);
  pending->request_ = {.run = std::move(run), .batch = std::move(batch), .status = {}};
  pending->wake_ = std::move(wake);
  if (!thread_.joinable()) {  // the machine has no room for it
    Write({pending});
    return pending;
  }
  absl::MutexLock lock(&mutex_);
  if (bytes_ + bytes > kMostBytesWaiting) {
    return absl::UnavailableError("more is logged at once than the disk takes: try again later");
  }
  bytes_ += bytes;
  waiting_.push_back(pending);
  return pending;
}

void LogQueue::Work() {
  while (true) {
    const Batches batches = Await();
    if (batches.empty()) return;
    Write(batches);
  }
}

LogQueue::Batches LogQueue::Await() {
  absl::MutexLock lock(&mutex_);
  const auto is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  };
  mutex_.Await(absl::Condition(&is_due));
  Batches batches;
  size_t rows = 0;
  while (!stopping_ && !waiting_.empty() && rows < kMostRowsTogether) {
    rows += RowsOf(waiting_.front()->request_.batch);
    bytes_ -= BytesOf(waiting_.front()->request_.batch);
    batches.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return batches;
}

void LogQueue::Write(const Batches& batches) {
  std::vector<LogRequest*> requests;
  requests.reserve(batches.size());
  for (const auto& pending : batches) requests.push_back(&pending->request_);
  store_->LogTogether(requests);
  for (const auto& pending : batches) {
    {
      absl::MutexLock lock(&pending->mutex_);
      pending->result_ = pending->request_.status;
    }
    pending->wake_();
  }
}

}  // namespace tutti::tracking
