#include "runtime/data/augment/geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace tutti::data {
namespace {

RandomStream Draw(int64_t sample) {
  return RandomStream(1, RandomStream::Purpose::kAugmentation, 0, sample);
}

TEST(Geometry, PadCropReachesEveryOffset) {
  std::map<std::pair<int, int>, int> offsets;
  for (int i = 0; i < 5000; ++i) {
    const auto geometry = PlanGeometry({.pad_crop = 2}, {32, 32}, Draw(i));
    ASSERT_TRUE(geometry.ok());
    EXPECT_FALSE(geometry->resize);
    EXPECT_FALSE(geometry->flip);
    ++offsets[{geometry->left, geometry->top}];
  }
  ASSERT_EQ(offsets.size(), 25u);
  for (const auto& [offset, count] : offsets) {
    EXPECT_LE(std::abs(offset.first), 2);
    EXPECT_LE(std::abs(offset.second), 2);
    EXPECT_GT(count, 120);  // 200 expected
  }
}

TEST(Geometry, FlipsHalfOfTheSamples) {
  int flips = 0;
  for (int i = 0; i < 4000; ++i) {
    flips += PlanGeometry({.pad_crop = 4, .flip = Flip::kByChance}, {32, 32}, Draw(i))->flip;
  }
  EXPECT_NEAR(flips, 2000, 130);  // 4 standard deviations
}

TEST(Geometry, ResizedCropsKeepTheirBounds) {
  const Augmentation augmentation{.height = 224, .width = 224, .random_resized_crop = true};
  double least = 1, most = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto geometry = PlanGeometry(augmentation, {500, 375}, Draw(i));
    ASSERT_TRUE(geometry->resize);
    const Axis &x = geometry->x, &y = geometry->y;
    ASSERT_GE(x.begin, 0);
    ASSERT_GE(y.begin, 0);
    ASSERT_LE(x.begin + x.extent, 500);
    ASSERT_LE(y.begin + y.extent, 375);
    const double area = x.extent * y.extent / (500 * 375), ratio = x.extent / y.extent;
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    least = std::min(least, area);
    most = std::max(most, area);
  }
  EXPECT_NEAR(least, 0.08, 0.005);
  EXPECT_GT(most, 0.97);
}

TEST(Geometry, ALongImageFallsBackToItsCentralCrop) {
  const Augmentation augmentation{.height = 8, .width = 8, .random_resized_crop = true};
  const auto geometry = PlanGeometry(augmentation, {1000, 9}, Draw(0));
  EXPECT_EQ(geometry->x.extent, 12);
  EXPECT_EQ(geometry->x.begin, 494);
  EXPECT_EQ(geometry->y.extent, 9);
}

// torchvision's Resize(256) and CenterCrop(224) of a 500 x 375 image: 341 x 256, then left 58
// (58.5 rounds to even), top 16.
TEST(Geometry, ResizeAndCentreCropAreTorchvisions) {
  const auto geometry =
      PlanGeometry({.height = 224, .width = 224, .resize = 256}, {500, 375}, Draw(0));
  EXPECT_EQ(geometry->x.full, 341);
  EXPECT_EQ(geometry->x.first, 58);
  EXPECT_EQ(geometry->x.count, 224);
  EXPECT_EQ(geometry->y.full, 256);
  EXPECT_EQ(geometry->y.first, 16);
}

TEST(Geometry, ErasesRectanglesOfTheirBoundsAsOftenAsAsked) {
  const Augmentation augmentation{.height = 224,
                                  .width = 224,
                                  .random_resized_crop = true,
                                  .flip = Flip::kByChance,
                                  .erase = 0.25};
  Augmentation plain = augmentation;
  plain.erase = 0;
  int erased = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto geometry = PlanGeometry(augmentation, {500, 375}, Draw(i));
    const auto without = PlanGeometry(plain, {500, 375}, Draw(i));
    ASSERT_EQ(geometry->x.begin, without->x.begin);
    ASSERT_EQ(geometry->flip, without->flip);
    const Region& region = geometry->erased;
    if (region.width == 0) continue;
    ++erased;
    ASSERT_GE(region.left, 0);
    ASSERT_GE(region.top, 0);
    ASSERT_LE(region.left + region.width, 224);
    ASSERT_LE(region.top + region.height, 224);
    const double area = double(region.width) * region.height / (224 * 224);
    const double ratio = double(region.height) / region.width;
    ASSERT_GT(area, 0.019);
    ASSERT_LT(area, 0.335);
    ASSERT_GT(ratio, 0.29);
    ASSERT_LT(ratio, 3.4);
  }
  EXPECT_NEAR(erased, 1000, 110);  // 4 standard deviations
}

TEST(Geometry, AnImageOfAnotherSizeIsAnErrorThatSaysBoth) {
  const absl::Status status = PlanGeometry({}, {40, 30}, Draw(0)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("40x30, the batch 32x32"));
  EXPECT_FALSE(PlanGeometry({.pad_crop = 1}, {29, 32}, Draw(0)).ok());
  EXPECT_TRUE(PlanGeometry({.pad_crop = 1}, {30, 64}, Draw(0)).ok());
}

TEST(Geometry, FittingResizesImagesOfAnotherSizeAndCopiesTheOthers) {
  const Augmentation fitting{.pad_crop = 4, .fit = true};
  EXPECT_FALSE(PlanGeometry(fitting, {32, 32}, Draw(0))->resize);
  const auto larger = PlanGeometry(fitting, {72, 40}, Draw(0));
  EXPECT_TRUE(larger->resize);
  EXPECT_EQ(larger->y.full, 32);
  EXPECT_EQ(larger->x.full, 57);  // 72 * 32 / 40
  EXPECT_EQ(larger->x.first, 12);
  const auto smaller = PlanGeometry(fitting, {28, 28}, Draw(0));
  EXPECT_TRUE(smaller->resize);
  EXPECT_EQ(smaller->x.full, 32);
  EXPECT_EQ(smaller->x.first, 0);
}

TEST(Geometry, RecipesThatContradictThemselvesAreRefused) {
  EXPECT_TRUE(Validate(Augmentation{}).ok());
  EXPECT_FALSE(Validate({.pad_crop = 4, .resize = 40}).ok());
  EXPECT_FALSE(Validate({.pad_crop = -1}).ok());
  EXPECT_FALSE(Validate({.height = 224, .width = 224, .resize = 200}).ok());
  EXPECT_FALSE(Validate({.height = 0}).ok());
  EXPECT_FALSE(Validate({.stddev = {1, 0, 1}}).ok());
  EXPECT_FALSE(Validate({.erase = 1.5}).ok());
  EXPECT_FALSE(Validate({.stddev = {1, NAN, 1}}).ok());
}

}  // namespace
}  // namespace tutti::data
