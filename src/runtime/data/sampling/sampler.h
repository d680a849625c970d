// Sampler decides which samples a rank sees at a step: a pure function of (seed, epoch, step, rank,
// world size).
//
// An epoch is a permutation of the dataset (Fisher-Yates with draws of Philox, a function of seed
// and epoch alone), cut into global batches; a global batch of b samples is split contiguously,
// rank r of w taking [b r / w, b (r + 1) / w). So the parts of the ranks differ by one sample at
// most, and their concatenation in rank order is the same for every world size. Where pairs are to
// stay together, the same holds of pairs.
//
// Of a dataset in parts (shards that come one by one) the epoch's order is another: the parts are
// permuted, and each sample of the part at place p falls, by chance, into one of the `mixed`
// buckets p, …, p + mixed - 1; buckets follow each other, and within one the order is by chance. So
// at any time samples come from `mixed` parts at most, the first step needs the first part alone,
// and each further part is needed when about as many samples as it has were read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tutti::data {

struct SamplerOptions {
  int64_t dataset_size = 0;
  int global_batch = 1;
  int rank = 0;
  int world_size = 1;
  uint64_t seed = 1;
  bool shuffle = true;    // else the dataset's order in every epoch
  bool drop_last = true;  // else the last step of an epoch is short
  bool pairs = false;     // every rank's part begins at an even position of the global batch
  std::vector<int64_t> parts = {};  // how many samples each has; empty: the dataset is whole
  int mixed = 16;                   // parts that samples come from at the same time, at least 1
};

// Which parts of a dataset a step's samples come from, of all ranks.
struct PartsInUse {
  std::span<const int64_t> now;   // those of the step and, before and between them, of the mix
  std::span<const int64_t> next;  // those after them, in their order; the next epoch's at the end
};

// Returns a permutation of {0, …, size - 1}.
std::vector<int64_t> Permutation(int64_t size, uint64_t seed, int64_t epoch);

// Holds the permutation of one epoch, so asking for steps in order costs nothing; a new epoch takes
// 8 bytes a sample once and about 10 ns a sample. Not thread-safe.
class Sampler {
 public:
  // 0 <= rank < world_size, global_batch > 0, dataset_size >= 0.
  explicit Sampler(const SamplerOptions& options);

  int64_t steps_per_epoch() const;
  // Returns the most that one step gives this rank.
  int64_t max_count() const;
  // Returns this rank's samples; 0 <= step < steps_per_epoch(). Valid until another epoch is asked
  // for.
  std::span<const int64_t> Samples(int64_t epoch, int64_t step);
  // Returns the parts that a step needs; both are empty of a whole dataset. Valid as above.
  PartsInUse Parts(int64_t epoch, int64_t step);

 private:
  void MakeOrder(int64_t epoch);
  void MakeOrderOfParts(int64_t epoch);
  size_t BucketOf(int64_t position) const;
  size_t mixed() const { return options_.shuffle ? static_cast<size_t>(options_.mixed) : 1; }

  SamplerOptions options_;
  int64_t epoch_ = -1;  // whose order `order_` holds
  std::vector<int64_t> order_;
  std::vector<int64_t> first_;        // of each part, its first sample
  std::vector<int64_t> parts_;        // in the epoch's order, then the next epoch's
  std::vector<int64_t> bucket_ends_;  // positions in `order_`
};

}  // namespace tutti::data
