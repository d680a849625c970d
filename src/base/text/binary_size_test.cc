#include "base/text/binary_size.h"

#include <gtest/gtest.h>

namespace tutti::base {
namespace {

TEST(BinarySize, IsInMebibytesAndFromOneOnInGibibytes) {
  EXPECT_EQ(BinarySize(0), "0 MiB");
  EXPECT_EQ(BinarySize(uint64_t{512} << 20), "512 MiB");
  EXPECT_EQ(BinarySize(uint64_t{1536} << 20), "1.5 GiB");
}

}  // namespace
}  // namespace tutti::base
