#include "base/threads/retry_pause.h"

#include <gmock/gmock.h>

#include <set>

namespace tutti::base {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::Le;

constexpr absl::Duration kFirst = absl::Milliseconds(20), kLongest = absl::Seconds(1);

TEST(RetryPause, DoublesUpToItsLimitAndIsAtLeastHalfOfThat) {
  RetryPause pause(kFirst, kLongest);
  for (absl::Duration whole = kFirst; whole < kLongest; whole *= 2) {
    EXPECT_THAT(pause.Next(), AllOf(Ge(whole / 2), Le(whole)));
  }
  for (int i = 0; i < 100; ++i) EXPECT_THAT(pause.Next(), AllOf(Ge(kLongest / 2), Le(kLongest)));
  pause.Reset();
  EXPECT_LE(pause.Next(), kFirst);
}

TEST(RetryPause, TwoWhomAServiceLeftDoNotComeBackTogether) {
  std::set<absl::Duration> pauses;
  for (int i = 0; i < 100; ++i) pauses.insert(RetryPause(kLongest, kLongest).Next());
  EXPECT_GT(pauses.size(), 50u);
}

TEST(RetryPause, IsAsLongAsTheServiceAsksForAndNotTheSameForAll) {
  std::set<absl::Duration> pauses;
  for (int i = 0; i < 100; ++i) {
    pauses.insert(RetryPause(kFirst, kLongest).Next(absl::Seconds(10)));
  }
  EXPECT_GE(*pauses.begin(), absl::Seconds(10));
  EXPECT_LE(*pauses.rbegin(), absl::Seconds(12.5));
  EXPECT_GT(pauses.size(), 50u);
  EXPECT_GE(RetryPause(kLongest, kLongest).Next(kFirst), kLongest / 2);
}

}  // namespace
}  // namespace tutti::base
