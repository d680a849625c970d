// Covers: prefetch/make_loader.cc, prefetch/slot.cc, prefetch/prefetch_loader.cc,
// prefetch/decoded_cache.cc.
#include "runtime/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/data/augment/transform.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/loader_fixture.h"
#include "runtime/data/sampling/random_stream.h"
#include "runtime/data/sampling/sampler.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

TEST_F(LoaderTest, GivesWhatSamplerAndTransformSay) {
  const auto dataset = MakeFakeDataset(40, 7);
  const LoaderOptions options = CifarOptions();
  const auto loader = Make(dataset, options);
  ASSERT_EQ(loader->steps_per_epoch(), 2);
  const Normalizer normalizer(options.augmentation, options.pixels);
  Transform transform(options.augmentation, normalizer);
  std::vector<float> expected(kValues);
  std::string scratch;
  for (int64_t step = 0; step < 5; ++step) {
    const Copy batch = NextOf(*loader);
    EXPECT_EQ(batch.epoch, step / 2);
    EXPECT_EQ(batch.step, step % 2);
    const std::vector<int64_t> order = Permutation(40, 3, step / 2);
    ASSERT_EQ(batch.samples.size(), 16u);
    for (size_t i = 0; i < 16; ++i) {
      const int64_t sample = order[static_cast<size_t>(step % 2) * 16 + i];
      ASSERT_EQ(batch.samples[i], sample);
      EXPECT_EQ(batch.labels[i], sample % 7);
      const RandomStream random(3, RandomStream::Purpose::kAugmentation, step / 2, sample);
      ASSERT_TRUE(
          transform.Apply(*dataset->Encoded(sample, scratch), random, expected.data()).ok());
      EXPECT_EQ(std::memcmp(expected.data(), &batch.pixels[i * kValues], 4 * kValues), 0);
    }
  }
}

TEST_F(LoaderTest, ThreadsPrefetchAndCacheChangeNothing) {
  const auto dataset = MakeFakeDataset(50, 10);
  LoaderOptions options = CifarOptions();
  options.threads = 0;
  options.cache_bytes = 0;
  const std::vector<Copy> expected = Take(*Make(dataset, options), 10);
  for (const int threads : {0, 1, 2, 5}) {
    for (const int prefetch : {1, 4}) {
      for (const int64_t cache : {int64_t{0}, int64_t{20 * 4200}, int64_t{1} << 30}) {
        options.threads = threads;
        options.prefetch = prefetch;
        options.cache_bytes = cache;
        EXPECT_EQ(Take(*Make(dataset, options), 10), expected)
            << threads << " threads, " << prefetch << " ahead, cache of " << cache;
      }
    }
  }
}

TEST_F(LoaderTest, TheRanksBatchesTogetherAreTheSameForEveryWorldSize) {
  const auto dataset = MakeFakeDataset(37, 10);
  LoaderOptions options = CifarOptions();
  options.drop_last = false;
  const std::vector<Copy> expected = Take(*Make(dataset, options), 6);
  for (const int world_size : {2, 3, 16}) {
    options.world_size = world_size;
    std::vector<std::unique_ptr<Loader>> ranks;
    for (options.rank = 0; options.rank < world_size; ++options.rank) {
      ranks.push_back(Make(dataset, options));
    }
    for (const Copy& batch : expected) {
      Copy joined{batch.epoch, batch.step};
      for (const auto& rank : ranks) {
        const Copy part = NextOf(*rank);
        EXPECT_EQ(part.step, batch.step);
        joined.samples.insert(joined.samples.end(), part.samples.begin(), part.samples.end());
        joined.labels.insert(joined.labels.end(), part.labels.begin(), part.labels.end());
        joined.pixels.insert(joined.pixels.end(), part.pixels.begin(), part.pixels.end());
      }
      EXPECT_EQ(joined, batch) << world_size << " ranks";
    }
  }
}

TEST_F(LoaderTest, SeekGoesToAnyPoint) {
  const auto dataset = MakeFakeDataset(50, 10);
  for (const int threads : {0, 2}) {
    LoaderOptions options = CifarOptions();
    options.threads = threads;
    const std::vector<Copy> all = Take(*Make(dataset, options), 12);
    const auto loader = Make(dataset, options);
    for (const int at : {7, 0, 11, 3, 3, 4}) {
      loader->Seek(at / 3, at % 3);
      EXPECT_EQ(NextOf(*loader), all[static_cast<size_t>(at)]);
    }
    EXPECT_EQ(NextOf(*loader), all[5]) << "and runs on from there";
    loader->Seek(1, 3);  // the end of an epoch
    EXPECT_EQ(NextOf(*loader), all[6]);
    for (int i = 0; i < 100; ++i) loader->Seek(i % 4, i % 3);
    EXPECT_EQ(NextOf(*loader), all[3 * 3 + 0]);
  }
}

TEST_F(LoaderTest, OnDemandItGivesWhatIsWantedInThatOrder) {
  const auto dataset = MakeFakeDataset(50, 10);
  for (const int threads : {0, 2}) {
    LoaderOptions options = CifarOptions();
    const std::vector<Copy> all = Take(*Make(dataset, options), 12);
    options.threads = threads;
    options.on_demand = true;
    const auto loader = Make(dataset, options);
    EXPECT_FALSE(loader->Next(base::Deadline::After(absl::Milliseconds(1))).ok());
    for (const int at : {7, 2, 2, 11, 0}) loader->Want(at / 3, at % 3);
    for (const size_t at : {7, 2, 2}) EXPECT_EQ(NextOf(*loader), all[at]);
    loader->Seek(0, 0);  // forgets the others
    loader->Want(1, 1);
    EXPECT_EQ(NextOf(*loader), all[4]);
  }
}

TEST_F(LoaderTest, TheLastStepMayBeShortOrEmpty) {
  LoaderOptions options = CifarOptions();
  options.global_batch = 4;
  options.shuffle = false;
  options.drop_last = false;
  options.world_size = 3;
  const auto dataset = MakeFakeDataset(5, 10);
  std::vector<size_t> counts;
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    const auto loader = Make(dataset, options);
    ASSERT_EQ(loader->steps_per_epoch(), 2);
    NextOf(*loader);
    counts.push_back(NextOf(*loader).samples.size());
    EXPECT_EQ(NextOf(*loader).epoch, 1);
  }
  EXPECT_EQ(counts, (std::vector<size_t>{0, 0, 1}));
}

// Any number of ranks and of workers, interrupted anywhere and gone on with others: an epoch holds
// every sample once.
TEST_F(LoaderTest, NoSampleIsLostOrRepeatedWhereverARunIsResumed) {
  RandomStream random(7, RandomStream::Purpose::kPermutation, 0, 0);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random.Below(static_cast<uint64_t>(most - least + 1)));
  };
  for (int trial = 0; trial < 25; ++trial) {
    const int size = draw(1, 60);
    const auto dataset = MakeFakeDataset(size, 10, 8, 8);
    LoaderOptions options{.global_batch = draw(1, 20), .seed = static_cast<uint64_t>(trial)};
    options.augmentation = {.height = 8, .width = 8};
    options.drop_last = false;
    const int64_t epoch = draw(0, 5);
    std::vector<int64_t> seen;
    // The first run ends before step `stop`; the second goes on there, on other ranks.
    const int64_t steps = (size + options.global_batch - 1) / options.global_batch;
    const int64_t stop = draw(0, static_cast<int>(steps));
    for (const auto& [begin, end] : {std::pair{int64_t{0}, stop}, std::pair{stop, steps}}) {
      options.world_size = draw(1, options.global_batch);
      for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
        options.threads = draw(0, 3);
        options.prefetch = draw(1, 3);
        const auto loader = Make(dataset, options);
        loader->Seek(epoch, begin);
        for (int64_t step = begin; step < end; ++step) {
          const auto batch = loader->Next(Soon());
          ASSERT_TRUE(batch.ok()) << batch.status();
          ASSERT_EQ(batch->step, step);
          seen.insert(seen.end(), batch->samples, batch->samples + batch->count);
        }
      }
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int64_t> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), int64_t{0});
    ASSERT_EQ(seen, all) << "trial " << trial;
  }
}

TEST_F(LoaderTest, ADeadlineIsKeptAndTheBatchComesLater) {
  const auto dataset = MakeFakeDataset(32, 10);
  LoaderOptions options = CifarOptions();
  options.threads = 0;
  const auto loader = Make(dataset, options);
  const absl::Status late = loader->Next(base::Deadline::After(-absl::Seconds(1))).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  const Copy batch = NextOf(*loader);
  EXPECT_EQ(batch.step, 0);
  EXPECT_EQ(batch.samples.size(), 16u);
}

TEST_F(LoaderTest, ABatchIsValidUntilTheNextCall) {
  const auto dataset = MakeFakeDataset(64, 10);
  LoaderOptions options = CifarOptions();
  options.threads = 3;
  options.prefetch = 1;
  const auto loader = Make(dataset, options);
  for (int i = 0; i < 40; ++i) {
    const auto batch = loader->Next(Soon());
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch->pixels) % 64, 0u);
    const Copy before = CopyOf(*batch);
    if (i % 7 == 0) loader->Seek(i % 5, 0);  // threads begin other batches meanwhile
    EXPECT_EQ(CopyOf(*batch), before);
  }
}

TEST_F(LoaderTest, EndsWhileThreadsAreAtWork) {
  const auto dataset = MakeFakeDataset(64, 10, 200, 200);
  LoaderOptions options = CifarOptions();
  options.augmentation.pad_crop = 0;
  options.augmentation.random_resized_crop = true;
  options.threads = 4;
  for (int i = 0; i < 20; ++i) {
    const auto loader = Make(dataset, options);
    if (i % 2 == 0) NextOf(*loader);
  }
}

TEST_F(LoaderTest, OptionsThatCannotBeAreNamed) {
  const auto dataset = MakeFakeDataset(10, 10);
  const auto error = [&](auto change) {
    LoaderOptions options;
    options.global_batch = 4;
    change(options);
    const absl::Status status = MakeLoader(dataset, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error([](auto& o) { o.global_batch = 0; }), HasSubstr("global_batch is 0"));
  EXPECT_THAT(error([](auto& o) { o.global_batch = 11; }), HasSubstr("make no batch of 11"));
  EXPECT_THAT(error([](auto& o) { o.rank = 1; }), HasSubstr("rank is 1"));
  EXPECT_THAT(error([](auto& o) { o.world_size = 5; }), HasSubstr("world_size is 5"));
  EXPECT_THAT(error([](auto& o) { o.threads = -1; }), HasSubstr("threads is -1"));
  EXPECT_THAT(error([](auto& o) { o.prefetch = 0; }), HasSubstr("prefetch is 0"));
  EXPECT_THAT(error([](auto& o) { o.augmentation.stddev[1] = 0; }), HasSubstr("stddev"));
}

}  // namespace
}  // namespace tutti::data
