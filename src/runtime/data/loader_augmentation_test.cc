// Covers: augment/mix.cc, prefetch/slot.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "runtime/data/augment/mix.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/loader.h"
#include "runtime/data/loader_fixture.h"
#include "runtime/data/sampling/random_stream.h"

namespace tutti::data {
namespace {

// Against the images of a loader that does not mix; for every number of ranks and threads.
TEST_F(LoaderTest, PairsAreMixedTheSameWayForEveryWorldSizeAndThreads) {
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

TEST_F(LoaderTest, TheLastEpochsAreNeitherErasedNorMixed) {
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

TEST_F(LoaderTest, AlternateFlipShowsBothSidesOfAnImageInTwoEpochs) {
  constexpr int kImages = 50;
  const auto dataset = MakeFakeDataset(kImages, 10);
  LoaderOptions options;
  options.global_batch = kImages;
  options.shuffle = false;
  const std::vector<float> as_they_are = NextOf(*Make(dataset, options)).pixels;
  options.augmentation.flip = Flip::kAlways;
  const std::vector<float> flipped = NextOf(*Make(dataset, options)).pixels;
  const auto holds = [](const std::vector<float>& all, const std::vector<float>& batch, size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i * kValues);
    return std::equal(batch.begin() + at, batch.begin() + at + kValues, all.begin() + at);
  };

  options.augmentation.flip = Flip::kAlternately;
  std::vector<int> flips_of_seeds;
  for (options.seed = 0; options.seed < 4; ++options.seed) {
    options.threads = static_cast<int>(options.seed);
    const std::vector<Copy> epochs = Take(*Make(dataset, options), 4);
    int flips = 0;
    for (size_t i = 0; i < kImages; ++i) {
      const bool even = holds(flipped, epochs[0].pixels, i);
      flips += even;
      for (size_t epoch = 0; epoch < 4; ++epoch) {
        const bool expected = even == (epoch % 2 == 0);
        EXPECT_TRUE(holds(expected ? flipped : as_they_are, epochs[epoch].pixels, i))
            << "image " << i << ", epoch " << epoch << ", seed " << options.seed;
      }
    }
    EXPECT_NEAR(flips, kImages / 2, 14);  // 4 standard deviations
    flips_of_seeds.push_back(flips);
  }
  EXPECT_THAT(flips_of_seeds, ::testing::Not(::testing::Each(flips_of_seeds[0])));
}

TEST_F(LoaderTest, BFloat16BatchesAreTheRoundedFloats) {
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

// Half of the images have the batch's size, and the cache of decoded images holds these alone.
TEST_F(LoaderTest, FittedImagesAreTheSameInEachEpochAndToldOfOnce) {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 16; ++i) {
    const int side = i % 2 == 0 ? 32 : 20 + 4 * i;
    samples.push_back({EncodePattern({.width = side, .height = side}, i), i});
  }
  const auto dataset = std::make_shared<FakeDataset>(std::move(samples), 16);
  LoaderOptions options = CifarOptions();
  options.augmentation = {.fit = true};
  options.shuffle = false;
  int told = 0;
  options.on_fitted = [&](absl::string_view) { ++told; };
  for (const int threads : {0, 2}) {
    options.threads = threads;
    told = 0;
    const auto loader = Make(dataset, options);
    const Copy first = NextOf(*loader), again = NextOf(*loader);
    EXPECT_EQ(first.pixels, again.pixels);
    EXPECT_EQ(told, 1);
  }
}

}  // namespace
}  // namespace tutti::data
