#include "platform/client/text/how_to_get.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::client {
namespace {

TEST(HowToGet, IsABuildInACheckout) {
  const base::TemporaryDirectory folder("how-to-get");
  EXPECT_EQ(HowToGet(folder.path() / "bin", "tutti-score"),
            "tools/setup build && tools/build tutti-score");
}

TEST(HowToGet, IsAWheelInAnEnvironment) {
  const base::TemporaryDirectory folder("how-to-get");
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "_programs.py", "").ok());
  EXPECT_EQ(HowToGet(folder.path() / "bin", "tutti-score"),
            "install the wheel tutti-train, and the torch that it requires, into this environment");
}

}  // namespace
}  // namespace tutti::client
