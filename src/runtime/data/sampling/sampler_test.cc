#include "runtime/data/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tutti::data {
namespace {

// The samples of an epoch as all ranks together see them, step after step, rank after rank.
std::vector<int64_t> Epoch(SamplerOptions options, int64_t epoch, int world_size) {
  options.world_size = world_size;
  std::vector<Sampler> ranks;
  for (options.rank = 0; options.rank < world_size; ++options.rank) ranks.emplace_back(options);
  std::vector<int64_t> seen;
  for (int64_t step = 0; step < ranks[0].steps_per_epoch(); ++step) {
    size_t least = SIZE_MAX, most = 0;
    for (Sampler& rank : ranks) {
      const auto samples = rank.Samples(epoch, step);
      seen.insert(seen.end(), samples.begin(), samples.end());
      least = std::min(least, samples.size());
      most = std::max(most, samples.size());
      EXPECT_LE(static_cast<int64_t>(samples.size()), rank.max_count());
    }
    EXPECT_LE(most - least, 1u) << "uneven parts at step " << step;
  }
  return seen;
}

class SamplerSizes : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(SamplerSizes, LosesAndRepeatsNoSampleForAnyWorldSize) {
  const auto [dataset_size, global_batch] = GetParam();
  SamplerOptions options{.dataset_size = dataset_size, .global_batch = global_batch, .seed = 5};
  options.drop_last = false;
  const std::vector<int64_t> expected = Permutation(dataset_size, 5, 2);
  std::vector<int64_t> sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < dataset_size; ++i) ASSERT_EQ(sorted[static_cast<size_t>(i)], i);
  for (const int world_size : {1, 2, 3, 4, 5, 7, 8, 16, 33, 100}) {
    EXPECT_EQ(Epoch(options, 2, world_size), expected) << world_size << " ranks";
  }
}

TEST_P(SamplerSizes, DropLastKeepsWholeGlobalBatchesForAnyWorldSize) {
  const auto [dataset_size, global_batch] = GetParam();
  const SamplerOptions options{
      .dataset_size = dataset_size, .global_batch = global_batch, .seed = 5};
  std::vector<int64_t> expected = Permutation(dataset_size, 5, 0);
  expected.resize(static_cast<size_t>(dataset_size / global_batch * global_batch));
  for (const int world_size : {1, 2, 3, 8, 33}) {
    EXPECT_EQ(Epoch(options, 0, world_size), expected) << world_size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Sampler, SamplerSizes,
                         testing::Combine(testing::Values(1, 2, 97, 128, 1000, 1003),
                                          testing::Values(1, 3, 64, 128)));

TEST(Sampler, EveryEpochAndSeedHasItsOwnOrder) {
  EXPECT_NE(Permutation(100, 1, 0), Permutation(100, 1, 1));
  EXPECT_NE(Permutation(100, 1, 0), Permutation(100, 2, 0));
  EXPECT_EQ(Permutation(100, 1, 7), Permutation(100, 1, 7));
}

TEST(Sampler, StepsAskedForInAnyOrderAreTheSame) {
  SamplerOptions options{.dataset_size = 50, .global_batch = 8, .rank = 1, .world_size = 2};
  Sampler forwards(options), backwards(options);
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> seen;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    for (int64_t step = 0; step < 6; ++step) {
      const auto samples = forwards.Samples(epoch, step);
      seen[{epoch, step}].assign(samples.begin(), samples.end());
    }
  }
  for (auto entry = seen.rbegin(); entry != seen.rend(); ++entry) {
    const auto samples = backwards.Samples(entry->first.first, entry->first.second);
    EXPECT_EQ(std::vector<int64_t>(samples.begin(), samples.end()), entry->second);
  }
}

TEST(Sampler, PairsStayTogether) {
  for (const int global_batch : {1, 2, 7, 64}) {
    for (const int world_size : {1, 2, 3, 8}) {
      SamplerOptions options{.dataset_size = 200, .global_batch = global_batch, .seed = 5};
      options.drop_last = false;
      options.pairs = true;
      options.world_size = world_size;
      std::vector<int64_t> seen;
      std::vector<Sampler> ranks;
      for (options.rank = 0; options.rank < world_size; ++options.rank) ranks.emplace_back(options);
      for (int64_t step = 0; step < ranks[0].steps_per_epoch(); ++step) {
        size_t before = 0;
        for (Sampler& rank : ranks) {
          const auto samples = rank.Samples(0, step);
          EXPECT_TRUE(samples.empty() || before % 2 == 0);
          EXPECT_LE(static_cast<int64_t>(samples.size()), rank.max_count());
          before += samples.size();
          seen.insert(seen.end(), samples.begin(), samples.end());
        }
      }
      EXPECT_EQ(seen, Permutation(200, 5, 0)) << global_batch << " over " << world_size;
    }
  }
}

TEST(Sampler, WithoutShuffleKeepsTheDatasetsOrder) {
  SamplerOptions options{.dataset_size = 10, .global_batch = 4};
  options.shuffle = options.drop_last = false;
  std::vector<int64_t> expected(10);
  std::iota(expected.begin(), expected.end(), int64_t{0});
  EXPECT_EQ(Epoch(options, 0, 3), expected);
  EXPECT_EQ(Epoch(options, 9, 3), expected);
}

// All 24 orders of four things over many epochs.
TEST(Sampler, PermutationsAreUniform) {
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kEpochs = 24000;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) ++counts[Permutation(4, 1, epoch)];
  ASSERT_EQ(counts.size(), 24u);
  double chi_squared = 0;
  for (const auto& [order, count] : counts) {
    chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  EXPECT_LT(chi_squared, 49.7);  // 23 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace tutti::data
