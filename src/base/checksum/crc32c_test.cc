#include "base/checksum/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::base {
namespace {

// The values of RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, HasThePublishedValues) {
  std::string ascending;
  for (char i = 0; i < 32; ++i) ascending += i;
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32c, GoesOnFromTheBytesBefore) {
  EXPECT_EQ(Crc32c("56789", Crc32c("1234")), 0xE3069283u);
  EXPECT_EQ(Crc32c("", Crc32c("123456789")), 0xE3069283u);
}

}  // namespace
}  // namespace tutti::base
