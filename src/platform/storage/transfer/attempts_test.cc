#include "platform/storage/transfer/attempts.h"

#include <gmock/gmock.h>

#include <atomic>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/threads/retry_after.h"

namespace tutti::storage {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;
using ::testing::SizeIs;

absl::Status Busy(absl::Duration told) {
  return base::WithRetryAfter(absl::UnavailableError("busy"), told);
}

TEST(Attempts, APauseEndsOnceItIsCancelled) {
  std::atomic<bool> cancelled = false;
  absl::Duration slept;
  int calls = 0;
  const Attempts attempts{.sleep =
                              [&](absl::Duration pause) {
                                slept += pause;
                                cancelled = true;
                              },
                          .cancelled = &cancelled};
  const absl::Status status = attempts.Run([&] {
    ++calls;
    return Busy(absl::Seconds(20));
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(calls, 1);
  EXPECT_LE(slept, absl::Seconds(1)) << "a put gives back what it has begun within 10 seconds";
}

TEST(Attempts, WhatMayBeCancelledSleepsAsLong) {
  const std::atomic<bool> cancelled = false;
  absl::Duration slept;
  const Attempts attempts{
      .most = 2, .sleep = [&](absl::Duration pause) { slept += pause; }, .cancelled = &cancelled};
  EXPECT_TRUE(absl::IsUnavailable(attempts.Run([] { return Busy(absl::Seconds(20)); })));
  EXPECT_THAT(slept, AllOf(Ge(absl::Seconds(20)), Le(absl::Seconds(25))));
}

TEST(Attempts, WhatIsAskedForBeyondTheLimitGoesToWhoWaitsItself) {
  std::vector<absl::Duration> pauses;
  Attempts attempts{.sleep = [&](absl::Duration pause) { pauses.push_back(pause); }};
  attempts.returns_longer = true;
  EXPECT_TRUE(absl::IsUnavailable(attempts.Run([] { return Busy(absl::Seconds(31)); })));
  EXPECT_THAT(pauses, SizeIs(0));
  EXPECT_TRUE(absl::IsUnavailable(attempts.Run([] { return Busy(absl::Seconds(30)); })));
  EXPECT_THAT(pauses, SizeIs(4));
}

}  // namespace
}  // namespace tutti::storage
