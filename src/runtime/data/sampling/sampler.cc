#include "runtime/data/sampling/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/data/sampling/random_stream.h"

namespace tutti::data {
namespace {

void ShuffleBy(RandomStream& random, std::span<int64_t> order) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
}

void Shuffle(std::span<int64_t> order, uint64_t seed, int64_t epoch) {
  RandomStream random(seed, RandomStream::Purpose::kPermutation, epoch, 0);
  ShuffleBy(random, order);
}

}  // namespace

std::vector<int64_t> Permutation(int64_t size, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  Shuffle(order, seed, epoch);
  return order;
}

Sampler::Sampler(const SamplerOptions& options)
    : options_(options), order_(static_cast<size_t>(options.dataset_size)) {
  std::iota(order_.begin(), order_.end(), int64_t{0});
  int64_t first = 0;
  for (const int64_t size : options_.parts) {
    first_.push_back(first);
    first += size;
  }
}

int64_t Sampler::steps_per_epoch() const {
  const int64_t batch = options_.global_batch;
  return (options_.dataset_size + (options_.drop_last ? 0 : batch - 1)) / batch;
}

int64_t Sampler::max_count() const {
  const int64_t unit = options_.pairs ? 2 : 1;
  const int64_t units = (options_.global_batch + unit - 1) / unit;
  return std::min<int64_t>(options_.global_batch,
                           (units + options_.world_size - 1) / options_.world_size * unit);
}

void Sampler::MakeOrder(int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  if (!options_.parts.empty()) return MakeOrderOfParts(epoch);
  if (!options_.shuffle) return;
  std::iota(order_.begin(), order_.end(), int64_t{0});
  Shuffle(order_, options_.seed, epoch);
}

// A counting sort of the samples by their buckets, then a shuffle of each bucket.
void Sampler::MakeOrderOfParts(int64_t epoch) {
  const auto count = static_cast<int64_t>(options_.parts.size());
  const auto order_of = [&](int64_t of_epoch) {
    if (options_.shuffle) return Permutation(count, options_.seed, of_epoch);
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    return order;
  };
  parts_ = order_of(epoch);
  RandomStream random(options_.seed, RandomStream::Purpose::kPermutation, epoch, 1);
  std::vector<std::vector<int64_t>> buckets(parts_.size() + mixed() - 1);
  for (size_t place = 0; place < parts_.size(); ++place) {
    const auto part = static_cast<size_t>(parts_[place]);
    for (int64_t i = 0; i < options_.parts[part]; ++i) {
      const size_t bucket = mixed() == 1 ? place : place + random.Below(mixed());
      buckets[bucket].push_back(first_[part] + i);
    }
  }
  bucket_ends_.clear();
  auto out = order_.begin();
  for (std::vector<int64_t>& bucket : buckets) {
    if (options_.shuffle) ShuffleBy(random, bucket);
    out = std::copy(bucket.begin(), bucket.end(), out);
    bucket_ends_.push_back(out - order_.begin());
  }
  const std::vector<int64_t> next = order_of(epoch + 1);
  parts_.insert(parts_.end(), next.begin(), next.end());
}

size_t Sampler::BucketOf(int64_t position) const {
  return static_cast<size_t>(std::upper_bound(bucket_ends_.begin(), bucket_ends_.end(), position) -
                             bucket_ends_.begin());
}

PartsInUse Sampler::Parts(int64_t epoch, int64_t step) {
  if (options_.parts.empty()) return {};
  MakeOrder(epoch);
  const int64_t begin = step * options_.global_batch;
  const int64_t end = std::min(begin + options_.global_batch, options_.dataset_size);
  const size_t count = options_.parts.size(), first_bucket = BucketOf(begin);
  const size_t first = first_bucket - std::min(first_bucket, mixed() - 1);
  const size_t last = std::min(BucketOf(end - 1) + 1, count);
  const std::span<const int64_t> all = parts_;
  return {all.subspan(first, last - first), all.subspan(last)};
}

std::span<const int64_t> Sampler::Samples(int64_t epoch, int64_t step) {
  MakeOrder(epoch);
  const int64_t first = step * options_.global_batch;
  const int64_t batch = std::min<int64_t>(options_.global_batch, options_.dataset_size - first);
  const int64_t unit = options_.pairs ? 2 : 1, units = (batch + unit - 1) / unit;
  const auto part = [&](int64_t rank) {
    return std::min(batch, units * rank / options_.world_size * unit);
  };
  const int64_t begin = part(options_.rank), end = part(options_.rank + 1);
  return std::span<const int64_t>(order_).subspan(static_cast<size_t>(first + begin),
                                                  static_cast<size_t>(end - begin));
}

}  // namespace tutti::data
