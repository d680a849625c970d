#include "base/threads/retry_after.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace tutti::base {
namespace {

TEST(RetryAfter, IsNotedAndStaysWithTheErrorOnItsWayUp) {
  const absl::Status busy = absl::UnavailableError("busy");
  EXPECT_EQ(RetryAfterOf(busy), absl::ZeroDuration());
  const absl::Status told = WithRetryAfter(busy, absl::Seconds(7));
  EXPECT_EQ(RetryAfterOf(told), absl::Seconds(7));
  EXPECT_EQ(RetryAfterOf(Annotate(told, "a/b")), absl::Seconds(7));
  EXPECT_EQ(told.message(), "busy");
}

TEST(RetryAfter, IsBounded) {
  const auto noted = [](absl::Duration told) {
    return RetryAfterOf(WithRetryAfter(absl::UnavailableError("busy"), told));
  };
  EXPECT_EQ(noted(absl::InfiniteDuration()), kLongestRetryAfter);
  EXPECT_EQ(noted(absl::Hours(24)), kLongestRetryAfter);
  EXPECT_EQ(noted(absl::Seconds(-3)), absl::ZeroDuration());
  EXPECT_EQ(noted(-absl::InfiniteDuration()), absl::ZeroDuration());
  EXPECT_TRUE(WithRetryAfter(absl::OkStatus(), absl::Seconds(1)).ok());
}

}  // namespace
}  // namespace tutti::base
