#include "base/text/one_of.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::base {
namespace {

TEST(OneOf, StandsBeforeTheLastWord) {
  EXPECT_EQ(OneOf(std::vector<std::string>{}), "");
  EXPECT_EQ(OneOf(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(OneOf(std::vector<std::string>{"a", "b"}), "a or b");
  EXPECT_EQ(OneOf(std::vector<std::string>{"a", "b", "c"}, " and "), "a, b and c");
}

}  // namespace
}  // namespace tutti::base
