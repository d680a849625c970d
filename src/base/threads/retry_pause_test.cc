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

}  // namespace
}  // namespace tutti::base
