#include "platform/store/job_state.h"

#include <gmock/gmock.h>

namespace tutti::store {
namespace {
using enum JobState;

TEST(JobState, NamesAreReadBackInAnyCase) {
  for (const JobState state : kJobStates) {
    EXPECT_EQ(*JobStateFromName(Name(state)), state);
  }
  EXPECT_EQ(*JobStateFromName("cAnCeLeD"), kCanceled);
}

TEST(JobState, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_THAT(std::string(JobStateFromName("Runing").status().message()),
              ::testing::HasSubstr("did you mean \"Running\"?"));
}

TEST(JobState, TheStraightLineIsAllowed) {
  constexpr JobState kLine[] = {kQueued,  kPreparing,  kProvisioning, kStarting,
                                kRunning, kFinalizing, kCompleted};
  for (size_t i = 1; i < std::size(kLine); ++i) EXPECT_TRUE(CanFollow(kLine[i - 1], kLine[i]));
}

TEST(JobState, NothingFollowsAnEnd) {
  for (const JobState from : {kCompleted, kFailed, kCanceled}) {
    EXPECT_TRUE(IsEnd(from));
    for (const JobState to : kJobStates) EXPECT_FALSE(CanFollow(from, to)) << Name(to);
  }
}

TEST(JobState, EveryOtherStateCanFailBeCanceledBeRepeatedOrGoBackToTheQueue) {
  for (const JobState from : kJobStates) {
    if (IsEnd(from)) continue;
    for (const JobState to : {kFailed, kCanceled, from, kQueued}) {
      EXPECT_TRUE(CanFollow(from, to)) << Name(from) << " -> " << Name(to);
    }
  }
}

TEST(JobState, OnlyFinalizingCompletes) {
  for (const JobState from : kJobStates) {
    EXPECT_EQ(CanFollow(from, kCompleted), from == kFinalizing) << Name(from);
  }
}

TEST(JobState, NoStepLeadsBackButToTheQueue) {
  EXPECT_FALSE(CanFollow(kRunning, kStarting));
  EXPECT_FALSE(CanFollow(kFinalizing, kRunning));
  EXPECT_FALSE(CanFollow(kStarting, kPreparing));
  EXPECT_TRUE(CanFollow(kProvisioning, kPreparing));  // staging happens on the nodes
}

}  // namespace
}  // namespace tutti::store
