// Batcher runs what BatchQueue decides: decoders turn encoded images into pixels, workers compute
// batches. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/scoring/serve/batch_queue.h"

namespace tutti::scoring {

struct BatcherOptions {
  int workers = 1;
  int decoders = 1;
  std::function<void()> begin_worker;  // called by each worker's thread; may be null
};

class Batcher {
 public:
  explicit Batcher(const BatcherOptions& options);
  // Ends the threads once they have done what they do. Calls that wait are not finished.
  ~Batcher();

  // `on_batch` is called by the workers, and must not wait; may be null.
  LanePtr AddModel(std::shared_ptr<Servable> model, size_t limit, double image_seconds,
                   std::function<void(const ComputedBatch&)> on_batch);
  void Retire(const LanePtr& lane);

  // These are as in BatchQueue. `call->arrived` is set, and its deadline is then `patience` later.
  std::optional<absl::Duration> Add(const LanePtr& lane, const CallPtr& call,
                                    absl::Duration patience);
  Withdrawal Withdraw(const CallPtr& call);

  // Counts the images that wait or are being computed.
  size_t Backlog(const LanePtr& lane) const;
  // Counts those whose pixels wait for the next batch.
  size_t Ready(const LanePtr& lane) const;

 private:
  void Decode();
  void Compute();

  const BatcherOptions options_;
  mutable absl::Mutex mutex_;
  absl::CondVar to_decode_, to_compute_;
  BatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tutti::scoring
