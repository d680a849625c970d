// Covers: rank_process.cc, rank_starter.cc.
#include "platform/launch/ranks/direct_starter.h"

#include "platform/launch/ranks/starter_fixture.h"

namespace tutti::launch {
namespace {

class DirectStarterTest : public StarterFixture {};

TEST_F(DirectStarterTest, StartsEveryRankOfTheNodeAsAChild) {
  command = "exit $RANK";
  DirectStarter starter(Context());
  ASSERT_TRUE(starter.Begin().ok());
  EXPECT_FALSE(starter.running()) << "no further rank comes";
  EXPECT_TRUE(ranks->HasAll());
  EXPECT_EQ(Events("started").size(), 2u);
  for (const auto& rank : ranks->ranks()) {
    EXPECT_TRUE(rank->is_child());
    EXPECT_EQ(ranks->Reap(*rank, /*stopped=*/false).code, rank->rank());
  }
  EXPECT_FALSE(ranks->AnyRuns());
  EXPECT_TRUE(ranks->failed());
  ASSERT_EQ(Events("exited").size(), 2u);
  EXPECT_EQ(Events("exited")[1]["code"], 1);
}

TEST_F(DirectStarterTest, ARankWhoseExitStatusCannotBeReadHasFailedAndSaysSo) {
  DirectStarter starter(Context());
  ASSERT_TRUE(starter.Begin().ok());
  RankProcess& rank = *ranks->ranks()[0];
  ASSERT_EQ(::waitpid(rank.pid(), nullptr, 0), rank.pid());  // so nobody else can
  EXPECT_NE(ranks->Reap(rank, /*stopped=*/false).code, 0);
  EXPECT_TRUE(ranks->failed());
  EXPECT_THAT(Events("exited")[0]["last_error"],
              testing::HasSubstr("its exit status could not be read: waitpid"));
  EXPECT_EQ(ranks->Reap(*ranks->ranks()[1], /*stopped=*/false).code, 0);
}

TEST_F(DirectStarterTest, IsWhatStartsRanksWhereNothingWasAgreedOn) {
  const auto starter = MakeRankStarter(Context(), MpiAgreement());
  EXPECT_NE(dynamic_cast<DirectStarter*>(starter.get()), nullptr);
}

}  // namespace
}  // namespace tutti::launch
