#include "runtime/scoring/serve/batcher.h"

#include "base/deadline.h"

namespace tutti::scoring {

Batcher::Batcher(const BatcherOptions& options) : options_(options), queue_(options.workers) {
  for (int i = 0; i < options_.decoders; ++i) threads_.emplace_back([this] { Decode(); });
  for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { Compute(); });
}

Batcher::~Batcher() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    to_decode_.SignalAll();
    to_compute_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

LanePtr Batcher::AddModel(std::shared_ptr<Servable> model, size_t limit, double image_seconds,
                          std::function<void(const ComputedBatch&)> on_batch) {
  absl::MutexLock lock(&mutex_);
  LanePtr lane = queue_.AddLane(std::move(model), limit, image_seconds);
  lane->on_batch = std::move(on_batch);
  return lane;
}

void Batcher::Retire(const LanePtr& lane) {
  absl::MutexLock lock(&mutex_);
  queue_.Retire(lane);
}

std::optional<absl::Duration> Batcher::Add(const LanePtr& lane, const CallPtr& call,
                                           absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  call->arrived = base::SteadyNow();
  call->deadline = call->arrived + patience;
  if (const auto late = queue_.Add(lane, call)) return late;
  // Of several images each may have a thread of its own.
  if (lane->encoded.size() > 1) {
    to_decode_.SignalAll();
  } else if (!lane->encoded.empty()) {
    to_decode_.Signal();
  }
  if (!lane->ready.empty()) to_compute_.Signal();
  return std::nullopt;
}

Withdrawal Batcher::Withdraw(const CallPtr& call) {
  absl::MutexLock lock(&mutex_);
  to_decode_.SignalAll();  // there may be room for more pixels
  return queue_.Withdraw(call);
}

size_t Batcher::Backlog(const LanePtr& lane) const {
  absl::MutexLock lock(&mutex_);
  return lane->backlog();
}

size_t Batcher::Ready(const LanePtr& lane) const {
  absl::MutexLock lock(&mutex_);
  return lane->ready.size();
}

void Batcher::Decode() {
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    auto next = queue_.TakeToDecode();
    if (!next) {
      to_decode_.Wait(&mutex_);
      continue;
    }
    const auto& [lane, queued] = *next;
    mutex_.Unlock();
    Image& image = queued.image();
    image.pixels.resize(lane->model->values());
    const auto size = lane->model->Decode(image.encoded, image.pixels.data());
    if (size.ok()) image.size = *size;
    image.encoded = {};
    mutex_.Lock();
    const bool is_finished = queue_.Decoded(lane, queued, size.status());
    if (!lane->ready.empty()) to_compute_.Signal();
    if (!is_finished) continue;
    mutex_.Unlock();
    queued.call->wake();
    mutex_.Lock();
  }
}

void Batcher::Compute() {
  if (options_.begin_worker) options_.begin_worker();
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    auto batch = queue_.TakeBatch(base::SteadyNow());
    if (!batch) {
      to_compute_.Wait(&mutex_);
      continue;
    }
    to_decode_.SignalAll();  // there is room for more pixels
    mutex_.Unlock();
    std::vector<const float*> images;
    images.reserve(batch->images.size());
    for (const QueuedImage& queued : batch->images) images.push_back(queued.image().pixels.data());
    std::vector<Answer> answers = batch->lane->model->Run(images);
    for (size_t i = 0; i < answers.size(); ++i) {
      batch->images[i].image().answer = std::move(answers[i]);
    }
    mutex_.Lock();
    const absl::Duration now = base::SteadyNow();
    const std::vector<CallPtr> finished = queue_.Computed(*batch, now);
    mutex_.Unlock();
    if (batch->lane->on_batch) batch->lane->on_batch({batch->images.size(), now - batch->began});
    for (const CallPtr& call : finished) call->wake();
    batch.reset();
    mutex_.Lock();
  }
}

}  // namespace tutti::scoring
