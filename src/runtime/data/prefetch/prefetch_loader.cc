#include "runtime/data/prefetch/prefetch_loader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::data {
namespace {

size_t ImageBytes(const LoaderOptions& options) {
  return static_cast<size_t>(options.augmentation.height) *
         static_cast<size_t>(options.augmentation.width) * 3 * BytesOf(options.pixels);
}

SamplerOptions ForSampler(const Dataset& dataset, const LoaderOptions& options) {
  return {.dataset_size = dataset.size(),
          .global_batch = options.global_batch,
          .rank = options.rank,
          .world_size = options.world_size,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .drop_last = options.drop_last};
}

}  // namespace

PrefetchLoader::PrefetchLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      normalizer_(options.augmentation, options.pixels),
      cache_(dataset_->size(), CopiesPixels(options.augmentation) ? options.cache_bytes : 0),
      own_transform_(options.augmentation, normalizer_),
      sampler_(ForSampler(*dataset_, options)) {
  steps_per_epoch_ = sampler_.steps_per_epoch();
  // One more than is kept ready: the consumer holds it.
  const size_t count = 1 + (options.threads > 0 ? static_cast<size_t>(options.prefetch) : 0);
  free_.reserve(count);
  queue_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    slots_.push_back(
        std::make_unique<Slot>(sampler_.max_count(), ImageBytes(options), options.memory));
    free_.push_back(slots_.back().get());
  }
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { RunThread(); });
}

PrefetchLoader::~PrefetchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_available_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PrefetchLoader::RunThread() {
  Transform transform(options_.augmentation, normalizer_);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Work work = ClaimAny();
    if (work.slot == nullptr) {
      work_available_.wait(lock);
      continue;
    }
    lock.unlock();
    const absl::Status status = Fill(work, transform);
    lock.lock();
    Finish(work, status);
  }
}

PrefetchLoader::Work PrefetchLoader::ClaimAny() {
  while (true) {
    for (Slot* slot : queue_) {
      if (slot->HasUnclaimed()) return {slot, slot->Claim()};
    }
    if (free_.empty()) return {};
    BeginStep();
  }
}

void PrefetchLoader::BeginStep() {
  Slot* slot = free_.back();
  free_.pop_back();
  const std::span<const int64_t> samples = sampler_.Samples(epoch_, step_);
  slot->Begin(epoch_, step_, samples);
  for (const int64_t sample : samples) {
    if (cache_.Find(sample).pixels == nullptr) dataset_->WillNeed(sample);
  }
  queue_.push_back(slot);
  if (++step_ == steps_per_epoch_) {
    step_ = 0;
    ++epoch_;
  }
  if (slot->Complete()) batch_complete_.notify_one();  // a rank's part of a short step may be empty
  work_available_.notify_all();
}

void PrefetchLoader::Finish(const Work& work, const absl::Status& status) {
  work.slot->Finish(work.position, status);
  if (work.slot->abandoned()) {
    if (work.slot->idle()) Free(work.slot);
  } else if (work.slot->Complete()) {
    batch_complete_.notify_one();
  }
}

void PrefetchLoader::Free(Slot* slot) {
  free_.push_back(slot);
  work_available_.notify_all();
  batch_complete_.notify_one();  // a consumer that waits without a head can begin one now
}

void PrefetchLoader::Seek(int64_t epoch, int64_t step) {
  const std::lock_guard lock(mutex_);
  epoch_ = epoch + step / steps_per_epoch_;  // the end of an epoch is the next one's begin
  step_ = step % steps_per_epoch_;
  for (Slot* slot : queue_) {
    if (slot->Abandon()) free_.push_back(slot);
  }
  queue_.clear();
  work_available_.notify_all();
}

PrefetchLoader::Work PrefetchLoader::ClaimFromHead() {
  if (queue_.empty() && !free_.empty()) BeginStep();
  if (queue_.empty() || !queue_.front()->HasUnclaimed()) return {};
  return {queue_.front(), queue_.front()->Claim()};
}

absl::StatusOr<Batch> PrefetchLoader::Next(base::Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (held_ != nullptr) Free(std::exchange(held_, nullptr));
  while (queue_.empty() || !queue_.front()->Complete()) {
    if (deadline.Expired()) return Late();
    const Work work = ClaimFromHead();
    if (work.slot == nullptr) {
      batch_complete_.wait_until(lock, deadline.time_point());
      continue;
    }
    lock.unlock();
    const absl::Status status = Fill(work, own_transform_);
    lock.lock();
    Finish(work, status);
  }
  return TakeHead();
}

absl::StatusOr<Batch> PrefetchLoader::TakeHead() {
  Slot* slot = queue_.front();
  queue_.erase(queue_.begin());
  if (slot->status().ok()) {
    held_ = slot;
    return slot->batch();
  }
  const Batch& batch = slot->batch();
  const absl::Status status =
      base::Annotate(slot->status(), absl::StrCat("epoch ", batch.epoch, " step ", batch.step));
  Free(slot);
  return status;
}

absl::Status PrefetchLoader::Late() const {
  if (queue_.empty()) return absl::DeadlineExceededError("loader: no batch was begun in time");
  const Batch& batch = queue_.front()->batch();
  return absl::DeadlineExceededError(
      absl::StrCat("loader: epoch ", batch.epoch, " step ", batch.step, " is not ready (",
                   queue_.front()->filled(), " of ", batch.count, " images)"));
}

absl::Status PrefetchLoader::Fill(const Work& work, Transform& transform) {
  const int64_t sample = work.slot->sample(work.position);
  work.slot->set_label(work.position, dataset_->label(sample));
  const absl::Status status =
      Decode(work.slot->batch().epoch, sample, transform, work.slot->pixels(work.position));
  return status.ok() ? status : base::Annotate(status, dataset_->Describe(sample));
}

absl::Status PrefetchLoader::Decode(int64_t epoch, int64_t sample, Transform& transform,
                                    void* out) {
  const RandomStream random(options_.seed, RandomStream::Purpose::kAugmentation, epoch, sample);
  ImageView image = cache_.Find(sample);
  if (image.pixels == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(const absl::string_view encoded, dataset_->Encoded(sample));
    if (!CopiesPixels(options_.augmentation)) return transform.Apply(encoded, random, out);
    TUTTI_ASSIGN_OR_RETURN(image, transform.DecodeWhole(encoded));
    cache_.Offer(sample, image);
  }
  return transform.ApplyToPixels(image, random, out);
}

}  // namespace tutti::data
