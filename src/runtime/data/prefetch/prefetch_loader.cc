#include "runtime/data/prefetch/prefetch_loader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::data {
namespace {

size_t ImageBytes(const LoaderOptions& options) {
  if (options.labels_only) return 0;
  return static_cast<size_t>(options.augmentation.height) *
         static_cast<size_t>(options.augmentation.width) * 3 * BytesOf(options.pixels);
}

int64_t CacheBytes(const LoaderOptions& options) {
  const bool holds_any = !options.labels_only && CopiesPixels(options.augmentation);
  return holds_any ? options.cache_bytes : 0;
}

SamplerOptions ForSampler(const Dataset& dataset, const LoaderOptions& options) {
  return {.dataset_size = dataset.size(),
          .global_batch = options.global_batch,
          .rank = options.rank,
          .world_size = options.world_size,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .drop_last = options.drop_last,
          .pairs = options.mixing.any(),
          .parts = {dataset.parts().begin(), dataset.parts().end()},
          .mixed = options.mixed_parts};
}

// As the trainer counts, from 1.
std::string PlaceOf(const Batch& batch) {
  return absl::StrCat("epoch ", batch.epoch + 1, ", its step ", batch.step + 1);
}

}  // namespace

PrefetchLoader::PrefetchLoader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      output_{options.augmentation.width, options.augmentation.height},
      normalizer_(options.augmentation, options.pixels, options.layout),
      cache_(dataset_->size(), CacheBytes(options)),
      own_{Transform(options.augmentation, normalizer_), {}, {}},
      sampler_(ForSampler(*dataset_, options)) {
  steps_per_epoch_ = sampler_.steps_per_epoch();
  // One more than is kept ready: the consumer holds it.
  const size_t count = 1 + (options.threads > 0 ? static_cast<size_t>(options.prefetch) : 0);
  free_.reserve(count);
  queue_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    slots_.push_back(std::make_unique<Slot>(sampler_.max_count(), ImageBytes(options),
                                            AnnotationBytes(*dataset_, output_),
                                            dataset_->annotations(), options.memory));
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
  Worker worker{Transform(options_.augmentation, normalizer_), {}, {}};
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Work work = ClaimAny();
    if (work.slot == nullptr) {
      work_available_.wait(lock);
      continue;
    }
    lock.unlock();
    Filled filled = Fill(work, worker);
    lock.lock();
    Finish(work, std::move(filled));
  }
}

PrefetchLoader::Work PrefetchLoader::ClaimAny() {
  while (true) {
    for (Slot* slot : queue_) {
      if (slot->HasUnclaimed()) return {slot, slot->Claim()};
    }
    if (!MayBegin()) return {};
    BeginStep();
  }
}

void PrefetchLoader::BeginStep() {
  Slot* slot = free_.back();
  free_.pop_back();
  if (options_.on_demand) {
    std::tie(epoch_, step_) = wanted_.front();
    wanted_.pop_front();
  }
  const std::span<const int64_t> samples = sampler_.Samples(epoch_, step_);
  const RandomStream random(options_.seed, RandomStream::Purpose::kMixing, epoch_, step_);
  const Mixing mixing = epoch_ < options_.plain_from ? options_.mixing : Mixing{};
  slot->Begin(epoch_, step_, samples, DrawMix(mixing, output_, random));
  const PartsInUse parts = sampler_.Parts(epoch_, step_);
  if (!parts.now.empty()) dataset_->WillVisit(parts.now, parts.next);
  if (!options_.labels_only) Announce(samples);
  queue_.push_back(slot);
  if (++step_ == steps_per_epoch_) {
    step_ = 0;
    ++epoch_;
  }
  if (slot->Complete()) batch_complete_.notify_one();  // a rank's part of a short step may be empty
  work_available_.notify_all();
}

void PrefetchLoader::Announce(std::span<const int64_t> samples) const {
  for (const int64_t sample : samples) {
    if (cache_.Find(sample).pixels == nullptr) dataset_->WillNeed(sample);
  }
}

void PrefetchLoader::Finish(const Work& work, Filled filled) {
  for (UnreadableSample& unreadable : filled.unreadable) {
    work.slot->NoteUnreadable(std::move(unreadable));
  }
  work.slot->Finish(work.position, filled.status);
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

void PrefetchLoader::Want(int64_t epoch, int64_t step) {
  const std::lock_guard lock(mutex_);
  wanted_.emplace_back(epoch, step);
  work_available_.notify_all();
}

void PrefetchLoader::Seek(int64_t epoch, int64_t step) {
  const std::lock_guard lock(mutex_);
  epoch_ = epoch + step / steps_per_epoch_;  // the end of an epoch is the next one's begin
  step_ = step % steps_per_epoch_;
  for (Slot* slot : queue_) {
    if (slot->Abandon()) free_.push_back(slot);
  }
  queue_.clear();
  wanted_.clear();
  work_available_.notify_all();
}

PrefetchLoader::Work PrefetchLoader::ClaimFromHead() {
  if (queue_.empty() && MayBegin()) BeginStep();
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
      // This call may have begun a step in which the rank has no part: complete, and nobody tells.
      if (!queue_.empty() && queue_.front()->Complete()) break;
      batch_complete_.wait_until(lock, deadline.time_point());
      continue;
    }
    lock.unlock();
    Filled filled = Fill(work, own_);
    lock.lock();
    Finish(work, std::move(filled));
  }
  return TakeHead();
}

absl::StatusOr<Batch> PrefetchLoader::TakeHead() {
  Slot* slot = queue_.front();
  queue_.erase(queue_.begin());
  if (!fitted_.empty()) options_.on_fitted(std::exchange(fitted_, ""));
  const absl::Status status = slot->status().ok() ? CountUnreadable(*slot) : slot->status();
  if (status.ok()) {
    held_ = slot;
    return slot->batch();
  }
  const Batch& batch = slot->batch();
  const std::string place = PlaceOf(batch);
  Free(slot);
  return base::Annotate(status, place);
}

// In the order of batches and positions, so that it does not depend on how threads interleave.
absl::Status PrefetchLoader::CountUnreadable(Slot& slot) {
  for (const UnreadableSample& one : slot.unreadable()) {
    if (unreadable_.contains(one.sample)) continue;
    if (unreadable() == options_.max_unreadable) {
      return absl::Status(one.status.code(),
                          absl::StrCat(one.status.message(), "; ", unreadable(),
                                       " other unreadable images were replaced, the most that "
                                       "is allowed"));
    }
    unreadable_.insert(one.sample);
    if (options_.on_unreadable) options_.on_unreadable(one.status.message());
  }
  return absl::OkStatus();
}

absl::Status PrefetchLoader::Late() const {
  if (queue_.empty()) return absl::DeadlineExceededError("loader: no batch was begun in time");
  const Batch& batch = queue_.front()->batch();
  return absl::DeadlineExceededError(absl::StrCat("loader: ", PlaceOf(batch), " is not ready (",
                                                  queue_.front()->filled(), " of ", batch.count,
                                                  " images)"));
}

PrefetchLoader::Filled PrefetchLoader::Fill(const Work& work, Worker& worker) {
  Filled filled;
  const int64_t wanted = work.slot->sample(work.position), size = dataset_->size();
  // One more than may be replaced: then it is an error anyway.
  const int64_t tries = std::min(size, options_.max_unreadable + 1);
  for (int64_t i = 0; i < tries; ++i) {
    const int64_t sample = (wanted + i) % size;
    filled.status = FillWith(sample, work, worker);
    if (filled.status.ok()) {
      work.slot->set_sample(work.position, sample);
      work.slot->set_label(work.position, dataset_->label(sample));
      MixIfPairIsThere(work);
      return filled;
    }
    filled.status = base::Annotate(filled.status, dataset_->Describe(sample));
    // The next image would have to wait as long.
    if (absl::IsUnavailable(filled.status) || absl::IsFailedPrecondition(filled.status)) {
      return filled;
    }
    if (absl::IsOutOfRange(filled.status)) {  // a class that there is not: no image's fault
      filled.status = absl::InvalidArgumentError(filled.status.message());
      return filled;
    }
    if (options_.max_unreadable > 0) {
      filled.unreadable.push_back({work.position, sample, filled.status});
    }
  }
  return filled;
}

// Whichever of the two is written last.
void PrefetchLoader::MixIfPairIsThere(const Work& work) const {
  if (options_.labels_only || work.slot->mix().own == 1) return;
  if (!work.slot->CompletesPair(work.position)) return;
  const int64_t first = work.position & ~int64_t{1};
  MixPair(work.slot->mix(), normalizer_, output_, work.slot->pixels(first),
          work.slot->pixels(first + 1));
}

absl::Status PrefetchLoader::FillWith(int64_t sample, const Work& work, Worker& worker) {
  if (options_.labels_only) return dataset_->AwaitLabel(sample);
  TUTTI_ASSIGN_OR_RETURN(const Geometry geometry, Decode(work.slot->batch().epoch, sample, worker,
                                                         work.slot->pixels(work.position)));
  return worker.annotations.Read(*dataset_, sample, geometry, output_,
                                 work.slot->annotation(work.position));
}

Flip PrefetchLoader::AlternateFlip(int64_t epoch, int64_t sample) const {
  RandomStream random(options_.seed, RandomStream::Purpose::kFlipping, 0, sample);
  return random.Coin() == (epoch % 2 == 0) ? Flip::kAlways : Flip::kNever;
}

void PrefetchLoader::NoteFitted(int64_t sample, ImageSize source) {
  if (!options_.on_fitted || has_fitted_.exchange(true)) return;
  std::string text = absl::StrCat(dataset_->Describe(sample), " is ", source.width, "x",
                                  source.height, ", and not ", output_.width, "x", output_.height);
  const std::lock_guard lock(mutex_);
  fitted_ = std::move(text);
}

absl::StatusOr<Geometry> PrefetchLoader::Decode(int64_t epoch, int64_t sample, Worker& worker,
                                                void* out) {
  const RandomStream random(options_.seed, RandomStream::Purpose::kAugmentation, epoch, sample);
  worker.transform.set_erase(epoch < options_.plain_from ? options_.augmentation.erase : 0);
  if (options_.augmentation.flip == Flip::kAlternately) {
    worker.transform.set_flip(AlternateFlip(epoch, sample));
  }
  ImageView image = cache_.Find(sample);
  if (image.pixels == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(const absl::string_view encoded,
                           dataset_->Encoded(sample, worker.bytes));
    TUTTI_ASSIGN_OR_RETURN(const bool copies, worker.transform.CopiesPixelsOf(encoded));
    if (!copies) {
      TUTTI_ASSIGN_OR_RETURN(const Geometry geometry, worker.transform.Apply(encoded, random, out));
      if (CopiesPixels(options_.augmentation)) NoteFitted(sample, geometry.source);
      return geometry;
    }
    TUTTI_ASSIGN_OR_RETURN(image, worker.transform.DecodeWhole(encoded));
    cache_.Offer(sample, image);
  }
  return worker.transform.ApplyToPixels(image, random, out);
}

}  // namespace tutti::data
