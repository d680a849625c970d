#include "base/text/closest.h"

#include <gtest/gtest.h>

#include <array>

namespace tutti::base {
namespace {

constexpr std::array<absl::string_view, 3> kKeys = {"command", "code", "compute"};

TEST(Closest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(DidYouMean("comand", kKeys), " (did you mean \"command\"?)");
  EXPECT_EQ(Closest("cod", kKeys), "code");
}

TEST(Closest, SaysNothingWhenNothingIsNear) { EXPECT_EQ(DidYouMean("zebra", kKeys), ""); }

}  // namespace
}  // namespace tutti::base
