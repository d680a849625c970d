#include "runtime/data/sampling/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/data/sampling/random_stream.h"

namespace tutti::data {
namespace {

void Shuffle(std::span<int64_t> order, uint64_t seed, int64_t epoch) {
  RandomStream random(seed, RandomStream::Purpose::kPermutation, epoch, 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
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

std::span<const int64_t> Sampler::Samples(int64_t epoch, int64_t step) {
  if (options_.shuffle && epoch != epoch_) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    Shuffle(order_, options_.seed, epoch);
    epoch_ = epoch;
  }
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
