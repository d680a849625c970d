#include "base/text/binary_size.h"

#include <gtest/gtest.h>

namespace tutti::base {
namespace {

TEST(BinarySize, IsInMebibytesAndFromOneOnInGibibytes) {
  EXPECT_EQ(BinarySize(0), "0 MiB");
  EXPECT_EQ(BinarySize(uint64_t{512} << 20), "512 MiB");
  EXPECT_EQ(BinarySize(uint64_t{1536} << 20), "1.5 GiB");
}

TEST(BinarySize, IsReadWithAUnit) {
  EXPECT_EQ(ReadSize("500MB"), 500'000'000u);
  EXPECT_EQ(ReadSize(" 1.5 gib"), uint64_t{3} << 29);
  EXPECT_EQ(ReadSize("2TB"), 2'000'000'000'000u);
  for (const char* text : {"", "5", "GB", "1.2.3GB", "-1GB", "1e9GB", "99999999TB", "1 K"}) {
    EXPECT_EQ(ReadSize(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tutti::base
