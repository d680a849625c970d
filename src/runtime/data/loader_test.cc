#include "runtime/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/data/augment/mix.h"
#include "runtime/data/augment/transform.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/decode/jpeg_fake.h"
#include "runtime/data/sampling/random_stream.h"
#include "runtime/data/sampling/sampler.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

constexpr size_t kValues = 32 * 32 * 3;

base::Deadline Soon() { return base::Deadline::After(absl::Seconds(30)); }

LoaderOptions CifarOptions() {
  LoaderOptions options{.global_batch = 16, .seed = 3};
  options.augmentation = {.pad_crop = 4,
                          .flip = Flip::kByChance,
                          .mean = {0.4914f, 0.4822f, 0.4465f},
                          .stddev = {0.2470f, 0.2435f, 0.2616f}};
  return options;
}

// A batch that outlives the loader's memory.
struct Copy {
  int64_t epoch, step;
  std::vector<int64_t> samples, labels;
  std::vector<float> pixels;
  bool operator==(const Copy&) const = default;
};

Copy CopyOf(const Batch& batch) {
  const float* pixels = static_cast<const float*>(batch.pixels);
  return {batch.epoch,
          batch.step,
          {batch.samples, batch.samples + batch.count},
          {batch.labels, batch.labels + batch.count},
          {pixels, pixels + static_cast<size_t>(batch.count) * kValues}};
}

Copy NextOf(Loader& loader) {
  const auto batch = loader.Next(Soon());
  EXPECT_TRUE(batch.ok()) << batch.status();
  return batch.ok() ? CopyOf(*batch) : Copy{};
}

std::unique_ptr<Loader> Make(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  auto loader = MakeLoader(std::move(dataset), options);
  EXPECT_TRUE(loader.ok()) << loader.status();
  return *std::move(loader);
}

std::vector<Copy> Take(Loader& loader, int count) {
  std::vector<Copy> batches;
  for (int i = 0; i < count; ++i) batches.push_back(NextOf(loader));
  return batches;
}

TEST(Loader, GivesWhatSamplerAndTransformSay) {
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

TEST(Loader, ThreadsPrefetchAndCacheChangeNothing) {
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

TEST(Loader, TheRanksBatchesTogetherAreTheSameForEveryWorldSize) {
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

// Against the pictures of a loader that does not mix; for every number of ranks and threads.
TEST(Loader, PairsAreMixedTheSameWayForEveryWorldSizeAndThreads) {
  const auto dataset = MakeFakeDataset(50, 10);
  LoaderOptions plain = CifarOptions();
  plain.global_batch = 15;  // the last has no partner
  LoaderOptions mixed = plain;
  mixed.mixing = {.mixup = 0.5, .cutmix = 1};
  const Normalizer normalizer(plain.augmentation, plain.pixels);
  for (const int world_size : {1, 2, 3}) {
    const auto whole = Make(dataset, plain);
    std::vector<std::unique_ptr<Loader>> ranks;
    mixed.world_size = world_size;
    mixed.threads = world_size;
    for (mixed.rank = 0; mixed.rank < world_size; ++mixed.rank) {
      ranks.push_back(Make(dataset, mixed));
    }
    for (int64_t step = 0; step < 7; ++step) {
      Copy expected = NextOf(*whole);
      const RandomStream random(3, RandomStream::Purpose::kMixing, step / 3, step % 3);
      const Mix mix = DrawMix(mixed.mixing, {32, 32}, random);
      for (size_t i = 0; i + 1 < 15; i += 2) {
        MixPair(mix, normalizer, {32, 32}, &expected.pixels[i * kValues],
                &expected.pixels[(i + 1) * kValues]);
      }
      std::vector<float> pixels;
      for (const auto& rank : ranks) {
        const auto batch = rank->Next(Soon());
        ASSERT_TRUE(batch.ok()) << batch.status();
        EXPECT_EQ(batch->own_share, mix.own);
        const Copy part = CopyOf(*batch);
        pixels.insert(pixels.end(), part.pixels.begin(), part.pixels.end());
      }
      ASSERT_EQ(pixels, expected.pixels) << world_size << " ranks, step " << step;
    }
  }
}

TEST(Loader, TheLastEpochsAreNeitherErasedNorMixed) {
  const auto dataset = MakeFakeDataset(50, 10);
  const LoaderOptions plain = CifarOptions();
  LoaderOptions options = plain;
  options.augmentation.erase = 1;
  options.mixing.mixup = 1;
  options.plain_from = 2;
  const std::vector<Copy> expected = Take(*Make(dataset, plain), 12);
  for (const int threads : {0, 2}) {
    options.threads = threads;
    const auto loader = Make(dataset, options);
    for (const int at : {0, 1, 2, 3, 4, 5, 6, 7, 8, 7, 5, 6, 11}) {
      loader->Seek(at / 3, at % 3);
      const auto batch = loader->Next(Soon());
      ASSERT_TRUE(batch.ok()) << batch.status();
      const Copy copy = CopyOf(*batch), &other = expected[static_cast<size_t>(at)];
      EXPECT_EQ(copy.samples, other.samples);
      EXPECT_EQ(copy.labels, other.labels);
      EXPECT_EQ(batch->own_share == 1, at >= 2 * 3) << at;
      EXPECT_EQ(copy.pixels == other.pixels, at >= 2 * 3) << at;
    }
    for (int i = 0; i < 2; ++i) {  // runs on over the boundary
      loader->Seek(1, 2 - i);
      for (int at = 5 - i; at < 8; ++at) {
        EXPECT_EQ(NextOf(*loader).pixels == expected[static_cast<size_t>(at)].pixels, at >= 6);
      }
    }
  }
}

TEST(Loader, AlternateFlipShowsBothSidesOfAPictureInTwoEpochs) {
  constexpr int kPictures = 50;
  const auto dataset = MakeFakeDataset(kPictures, 10);
  LoaderOptions options;
  options.global_batch = kPictures;
  options.shuffle = false;
  const std::vector<float> as_they_are = NextOf(*Make(dataset, options)).pixels;
  options.augmentation.flip = Flip::kAlways;
  const std::vector<float> flipped = NextOf(*Make(dataset, options)).pixels;
  const auto holds = [](const std::vector<float>& all, const std::vector<float>& batch, size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i * kValues);
    return std::equal(batch.begin() + at, batch.begin() + at + kValues, all.begin() + at);
  };

  options.augmentation.flip = Flip::kByChance;
  options.alternate_flip = true;
  std::vector<int> flips_of_seeds;
  for (options.seed = 0; options.seed < 4; ++options.seed) {
    const std::vector<Copy> epochs = Take(*Make(dataset, options), 4);
    int flips = 0;
    for (size_t i = 0; i < kPictures; ++i) {
      const bool even = holds(flipped, epochs[0].pixels, i);
      flips += even;
      for (size_t epoch = 0; epoch < 4; ++epoch) {
        const bool expected = even == (epoch % 2 == 0);
        EXPECT_TRUE(holds(expected ? flipped : as_they_are, epochs[epoch].pixels, i))
            << "picture " << i << ", epoch " << epoch << ", seed " << options.seed;
      }
    }
    EXPECT_NEAR(flips, kPictures / 2, 14);  // 4 standard deviations
    flips_of_seeds.push_back(flips);
  }
  EXPECT_THAT(flips_of_seeds, ::testing::Not(::testing::Each(flips_of_seeds[0])));
}

TEST(Loader, SeekGoesToAnyPoint) {
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

TEST(Loader, TheLastStepMayBeShortOrEmpty) {
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

TEST(Loader, AnUnreadableSampleIsAnErrorOfItsBatchAlone) {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 12; ++i) samples.push_back({EncodePattern({}, i), 0});
  samples[5].encoded = "not at all";
  samples[6].encoded.resize(100);
  samples[7].encoded = "";
  const auto dataset = std::make_shared<FakeDataset>(std::move(samples), 1);
  for (const int threads : {0, 1, 4}) {
    LoaderOptions options = CifarOptions();
    options.global_batch = 4;
    options.shuffle = false;
    options.threads = threads;
    const auto loader = Make(dataset, options);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(NextOf(*loader).step, 0);
      const absl::Status status = loader->Next(Soon()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message(),
                absl::StrCat("epoch ", epoch + 1,
                             ", its step 2: fake:5: not a JPEG (starts with 6e 6f 74 20 61 "
                             "74 20 61)"));
      EXPECT_EQ(NextOf(*loader).step, 2);
    }
  }
}

// Samples 5 and 9 are damaged; the first epoch, in the dataset's order, in batches of four.
std::shared_ptr<const Dataset> DamagedDataset() {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 12; ++i) samples.push_back({EncodePattern({}, i), i});
  samples[5].encoded = "not at all";
  samples[9].encoded.resize(100);
  return std::make_shared<FakeDataset>(std::move(samples), 12);
}

TEST(Loader, UnreadablePicturesAreNamedAndReplacedByTheNextUpToALimit) {
  const auto dataset = DamagedDataset();
  for (const int threads : {0, 1, 4}) {
    LoaderOptions options = CifarOptions();
    options.global_batch = 4;
    options.shuffle = false;
    options.threads = threads;
    options.max_unreadable = 2;
    std::vector<std::string> named;
    options.on_unreadable = [&](absl::string_view what) { named.emplace_back(what); };
    const auto loader = Make(dataset, options);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      NextOf(*loader);
      const Copy second = NextOf(*loader);
      EXPECT_EQ(second.samples, (std::vector<int64_t>{4, 6, 6, 7}));
      EXPECT_EQ(second.labels, second.samples);
      EXPECT_EQ(NextOf(*loader).samples, (std::vector<int64_t>{8, 10, 10, 11}));
    }
    EXPECT_EQ(loader->unreadable(), 2) << "however often they are met";
    ASSERT_EQ(named.size(), 2u);
    EXPECT_THAT(named[0], HasSubstr("fake:5: not a JPEG"));
    EXPECT_THAT(named[1], HasSubstr("fake:9: damaged JPEG"));
  }
}

TEST(Loader, OneUnreadablePictureTooManyIsAnError) {
  LoaderOptions options = CifarOptions();
  options.global_batch = 4;
  options.shuffle = false;
  options.threads = 2;
  options.max_unreadable = 1;
  const auto loader = Make(DamagedDataset(), options);
  NextOf(*loader);
  NextOf(*loader);
  const absl::Status status = loader->Next(Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("epoch 1, its step 3: fake:9: damaged JPEG"),
                             HasSubstr("1 other unreadable pictures were replaced")));
}

// Any number of ranks and of workers, interrupted anywhere and gone on with others: an epoch holds
// every sample once.
TEST(Loader, NoSampleIsLostOrRepeatedWhereverARunIsResumed) {
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

TEST(Loader, ADeadlineIsKeptAndTheBatchComesLater) {
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

TEST(Loader, ABatchIsValidUntilTheNextCall) {
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

TEST(Loader, EndsWhileThreadsAreAtWork) {
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

TEST(Loader, BFloat16BatchesAreTheRoundedFloats) {
  const auto dataset = MakeFakeDataset(16, 10);
  LoaderOptions options = CifarOptions();
  const Copy floats = NextOf(*Make(dataset, options));
  options.pixels = PixelType::kBFloat16;
  const auto loader = Make(dataset, options);
  const auto batch = loader->Next(Soon());
  ASSERT_TRUE(batch.ok());
  const uint16_t* halves = static_cast<const uint16_t*>(batch->pixels);
  for (size_t i = 0; i < floats.pixels.size(); ++i) {
    ASSERT_EQ(halves[i], ToBFloat16(floats.pixels[i]));
  }
}

TEST(Loader, OptionsThatCannotBeAreNamed) {
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
