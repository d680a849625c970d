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

// A dataset of shards.
SamplerOptions InParts(std::vector<int64_t> parts, int mixed) {
  SamplerOptions options{.global_batch = 8, .seed = 7, .parts = std::move(parts), .mixed = mixed};
  options.dataset_size = std::accumulate(options.parts.begin(), options.parts.end(), int64_t{0});
  options.drop_last = false;
  return options;
}

TEST(SamplerOfParts, LosesAndRepeatsNoSampleForAnyWorldSize) {
  const SamplerOptions options = InParts({50, 1, 30, 64, 20, 20, 20, 47}, 3);
  const std::vector<int64_t> order = Epoch(options, 2, 1);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], static_cast<int64_t>(i));
  EXPECT_NE(order, Epoch(options, 3, 1)) << "another epoch, another order";
  for (const int world_size : {2, 3, 8}) EXPECT_EQ(Epoch(options, 2, world_size), order);
}

TEST(SamplerOfParts, EachStepNeedsThePartsThatItNamesAndTheFirstNeedsFew) {
  constexpr int kMixed = 4;
  const SamplerOptions options = InParts(std::vector<int64_t>(20, 100), kMixed);
  Sampler sampler(options);
  EXPECT_LE(sampler.Parts(0, 0).now.size(), 2u) << "the first step waits for no mix";
  std::vector<int64_t> coming;
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    const PartsInUse parts = sampler.Parts(0, step);
    EXPECT_LE(parts.now.size(), kMixed + 1u);
    for (const int64_t sample : sampler.Samples(0, step)) {
      EXPECT_NE(std::find(parts.now.begin(), parts.now.end(), sample / 100), parts.now.end());
    }
    if (!coming.empty() && parts.now.back() != coming[0]) {
      EXPECT_EQ(parts.next.front(), coming[0]) << "in the order that was told";
    }
    coming.assign(parts.next.begin(), parts.next.end());
  }
  const std::vector<int64_t> begin(sampler.Parts(1, 0).now.begin(), sampler.Parts(1, 0).now.end());
  EXPECT_EQ(begin[0], coming[0]) << "the next epoch's come at the end";
}

TEST(SamplerOfParts, SamplesOfAPartAreSpreadOverAsManyPartsAsAreMixed) {
  const SamplerOptions options = InParts(std::vector<int64_t>(20, 100), 4);
  const std::vector<int64_t> order = Epoch(options, 0, 1);
  std::map<int64_t, std::pair<size_t, size_t>> range;  // of each part: first and last position
  for (size_t i = 0; i < order.size(); ++i) {
    auto& [first, last] = range.try_emplace(order[i] / 100, i, i).first->second;
    last = i;
  }
  for (const auto& [part, positions] : range) {
    EXPECT_GT(positions.second - positions.first, 130u) << "part " << part;
    EXPECT_LT(positions.second - positions.first, 500u) << "part " << part;
  }
}

TEST(SamplerOfParts, WithoutShuffleTheOrderIsTheDatasets) {
  SamplerOptions options = InParts({5, 10, 1}, 16);
  options.shuffle = false;
  std::vector<int64_t> expected(16);
  std::iota(expected.begin(), expected.end(), int64_t{0});
  EXPECT_EQ(Epoch(options, 3, 2), expected);
  Sampler sampler(options);
  EXPECT_EQ(sampler.Parts(0, 0).now.size(), 2u);
  EXPECT_EQ(sampler.Parts(0, 1).now.front(), 1);
}

}  // namespace
}  // namespace tutti::data
