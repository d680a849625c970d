#include "spec/types/process_variable.h"

#include <gmock/gmock.h>

namespace tutti::spec {
namespace {

TEST(ProcessVariable, IsOfAtMost128KiBWithItsName) {
  const std::string longest(131072 - 3, 'x');
  EXPECT_EQ(WhyTooLong("A", longest), "");
  EXPECT_THAT(WhyTooLong("A", longest + "x"), testing::StartsWith("has 131070 bytes; a process"));
  EXPECT_NE(WhyTooLong("AB", longest), "");
}

}  // namespace
}  // namespace tutti::spec
