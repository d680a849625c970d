#include "base/machine/vector_width.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tutti::base {
namespace {

TUTTI_INLINE void Scale(std::vector<float>& values, float by) {
  for (float& value : values) value *= by;
}

TEST(VectorWidthTest, EveryVersionComputesTheSame) {
  for (const size_t size : {0, 1, 7, 64, 1001}) {
    std::vector<float> values(size, 3), expected(size, 6);
    Vectorised([&]() TUTTI_INLINE_BODY { Scale(values, 2); });
    EXPECT_EQ(values, expected) << size << " by what this processor uses";
    std::vector<float> plain(size, 3);
    Scale(plain, 2);
    EXPECT_EQ(plain, values) << size;
  }
}

TEST(VectorWidthTest, ReturnsWhatTheBodyDoes) {
  EXPECT_EQ(Vectorised([]() TUTTI_INLINE_BODY { return 17; }), 17);
  const auto moved = Vectorised([]() TUTTI_INLINE_BODY { return std::make_unique<int>(5); });
  EXPECT_EQ(*moved, 5);
}

}  // namespace
}  // namespace tutti::base
