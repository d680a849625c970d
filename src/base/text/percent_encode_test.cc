#include "base/text/percent_encode.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::base {
namespace {

TEST(PercentEncode, KeepsWhatAddressesDoNotReserve) {
  EXPECT_EQ(PercentEncode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncode("a/b c"), "a%2Fb%20c");
  EXPECT_EQ(PercentEncode("a/b c", true), "a/b%20c");
  EXPECT_EQ(PercentEncode(std::string("\0\xff", 2)), "%00%FF");
}

}  // namespace
}  // namespace tutti::base
