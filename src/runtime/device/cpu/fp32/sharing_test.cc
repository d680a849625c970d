#include "runtime/device/cpu/fp32/sharing.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::device::cpu::fp32 {
namespace {

TEST(SharingTest, PartsHaveSumsOfTheirOwnWhereTheyAreFewBesideThePixels) {
  EXPECT_TRUE(HasOwnSums({0, 1000}, 32, 4000, 1));
  EXPECT_TRUE(HasOwnSums({0, 1000}, 32, 4000, 2));
  EXPECT_FALSE(HasOwnSums({0, 999}, 32, 4000, 2)) << "499 of 32 floats are less than 4 x 4,000";
  EXPECT_FALSE(HasOwnSums({0, 1000}, 32, 4000, 3));
  EXPECT_FALSE(HasOwnSums({0, 2}, 32, 1, 40)) << "a thread without a pixel";
  EXPECT_TRUE(HasOwnSums({0, 64 * 4}, 36 * 128, 36 * 64 * 64, 2)) << "ResNet-20's last, of 64";
  EXPECT_FALSE(HasOwnSums({0, 32 * 16}, 36 * 512, 36 * 256 * 256, 2)) << "ResNet-50's, of 32";
}

TEST(SharingTest, PartsFollowEachOtherWithoutAGap) {
  const Range all = {5, 22};
  for (const int64_t parts : {1, 2, 3, 17, 20}) {
    int64_t next = all.first;
    for (int64_t part = 0; part < parts; ++part) {
      EXPECT_EQ(all.Part(part, parts).first, next);
      EXPECT_LE(all.Part(part, parts).size(), (all.size() + parts - 1) / parts);
      next = all.Part(part, parts).last;
    }
    EXPECT_EQ(next, all.last);
  }
}

TEST(SharingTest, AddsTheSumsOfAllPartsUp) {
  std::vector<float> sums = {1, 2, 3, 10, 20, 30, 100, 200, 300};
  AddParts(sums.data() + 1, 2, 3, 3);
  EXPECT_EQ(sums, (std::vector<float>{1, 222, 333, 10, 20, 30, 100, 200, 300}));
}

}  // namespace
}  // namespace tutti::device::cpu::fp32
