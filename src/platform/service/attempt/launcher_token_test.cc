#include "platform/service/attempt/launcher_token.h"

#include <gtest/gtest.h>

namespace tutti::service {
namespace {

TEST(LauncherToken, IsOfOneAllocationAndOneService) {
  const std::string token = LauncherToken("key", "job.1");
  EXPECT_EQ(token.size(), 64u);
  EXPECT_EQ(token, LauncherToken("key", "job.1"));
  EXPECT_NE(token, LauncherToken("key", "job.1-2"));
  EXPECT_NE(token, LauncherToken("other", "job.1"));
}

TEST(LauncherToken, IsNoneWithoutAKey) { EXPECT_EQ(LauncherToken("", "job.1"), ""); }

}  // namespace
}  // namespace tutti::service
