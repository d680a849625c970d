// PrefetchLoader is the loader: threads fill batches ahead of the consumer, image by image.
//
//   free slots ──Begin──> queue (in the order of steps) ──complete──> held by the consumer ──> free
//                           │ threads claim positions,
//                           └ the oldest batch first
//
// Invariant: the queue's slots hold consecutive steps, or those that were wanted, its head the one
// that Next gives next. A thread is at work on claimed positions only, outside of the mutex. The
// consumer works too, on the head, when it would have to wait; so 0 threads is the same machine.
// Seek abandons the queue: a slot that threads are still at work on joins the free ones when its
// last position is finished.
//
// After construction nothing is allocated for a step, save for an error's text, libjpeg's own
// memory and images that enter the cache.
#pragma once

// std::mutex, not absl::Mutex: Debian's Abseil is not built for ThreadSanitizer, which would take
// every pair of accesses under it for a race.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "runtime/data/annotation/annotation.h"
#include "runtime/data/augment/normalize.h"
#include "runtime/data/augment/transform.h"
#include "runtime/data/loader.h"
#include "runtime/data/prefetch/decoded_cache.h"
#include "runtime/data/prefetch/slot.h"
#include "runtime/data/sampling/sampler.h"

namespace tutti::data {

class PrefetchLoader final : public Loader {
 public:
  // `options` have been checked by MakeLoader.
  PrefetchLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  // Waits for the threads; each ends after the image that it is at.
  ~PrefetchLoader() override;

  int64_t steps_per_epoch() const override { return steps_per_epoch_; }
  void Want(int64_t epoch, int64_t step) override;
  void Seek(int64_t epoch, int64_t step) override;
  absl::StatusOr<Batch> Next(base::Deadline deadline) override;
  int64_t unreadable() const override { return static_cast<int64_t>(unreadable_.size()); }

 private:
  struct Work {
    Slot* slot = nullptr;
    int64_t position = 0;
  };
  // What a thread keeps from image to image.
  struct Worker {
    Transform transform;
    std::string bytes;
    AnnotationReader annotations;
  };
  struct Filled {
    absl::Status status;
    std::vector<UnreadableSample> unreadable;  // and replaced
  };

  void RunThread();
  // The functions below need the mutex held.
  Work ClaimAny();
  Work ClaimFromHead();
  bool MayBegin() const { return !free_.empty() && !(options_.on_demand && wanted_.empty()); }
  void BeginStep();
  void Announce(std::span<const int64_t> samples) const;
  void Finish(const Work& work, Filled filled);
  void Free(Slot* slot);
  absl::StatusOr<Batch> TakeHead();
  absl::Status CountUnreadable(Slot& slot);
  absl::Status Late() const;
  // The functions below need it not held.
  Filled Fill(const Work& work, Worker& worker);
  absl::Status FillWith(int64_t sample, const Work& work, Worker& worker);
  void MixIfPairIsThere(const Work& work) const;
  Flip AlternateFlip(int64_t epoch, int64_t sample) const;
  void NoteFitted(int64_t sample, ImageSize source);
  absl::StatusOr<Geometry> Decode(int64_t epoch, int64_t sample, Worker& worker, void* out);

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const ImageSize output_;
  const Normalizer normalizer_;
  DecodedCache cache_;
  Worker own_;                            // the consumer's
  std::atomic<bool> has_fitted_ = false;  // an image of another size than the batch's
  int64_t steps_per_epoch_;

  std::mutex mutex_;
  std::condition_variable work_available_, batch_complete_;
  bool stopping_ = false;
  Sampler sampler_;
  int64_t epoch_ = 0, step_ = 0;                    // of the next slot to begin
  std::deque<std::pair<int64_t, int64_t>> wanted_;  // on demand: of those to begin
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_, queue_;
  std::string fitted_;                       // the first of these, until Next tells of it
  Slot* held_ = nullptr;                     // the consumer's
  absl::flat_hash_set<int64_t> unreadable_;  // the consumer's: samples that Next has named
  std::vector<std::thread> threads_;
};

}  // namespace tutti::data
