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

TEST(MetricsToken, IsOfOneServiceAndNoLaunchers) {
  EXPECT_EQ(MetricsToken("key").size(), 64u);
  EXPECT_NE(MetricsToken("key"), MetricsToken("other"));
  EXPECT_NE(MetricsToken("key"), LauncherToken("key", "metrics"));
  EXPECT_EQ(MetricsToken(""), "");
}

}  // namespace
}  // namespace tutti::service
