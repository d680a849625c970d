#include "platform/launch/mpi/pmi_protocol.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::launch {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PmiProtocolTest : public ::testing::Test {
 protected:
  // "CLIENT LINE" of each reply; "cut" if the client is to be cut off.
  std::vector<std::string> Say(int client, absl::string_view line) {
    std::vector<PmiReply> replies;
    if (!world_.HandleCommand(client, line, replies)) return {"cut"};
    std::vector<std::string> said;
    for (const PmiReply& reply : replies)
      said.push_back(absl::StrCat(reply.client, " ", reply.line));
    return said;
  }
  void Come(int client, int rank) {
    Say(client, absl::StrCat("cmd=initack pmiid=", kFirstId + rank));
  }

  static constexpr int kFirstId = 700;  // the lines below have those of both ranks: 700 and 701
  PmiProtocol world_{2, "kvs_a", kFirstId};
};

TEST_F(PmiProtocolTest, TellsARankWhoItIs) {
  EXPECT_THAT(Say(7, "cmd=initack pmiid=701"),
              ElementsAre("7 cmd=initack rc=0", "7 cmd=set size=2", "7 cmd=set rank=1",
                          "7 cmd=set debug=0"));
  EXPECT_THAT(Say(7, "cmd=init pmi_version=1 pmi_subversion=1"),
              ElementsAre("7 cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"));
  EXPECT_THAT(Say(7, "cmd=get_my_kvsname"), ElementsAre("7 cmd=my_kvsname rc=0 kvsname=kvs_a"));
  EXPECT_THAT(Say(7, "cmd=get_universe_size"), ElementsAre("7 cmd=universe_size rc=0 size=2"));
  EXPECT_THAT(Say(7, "cmd=finalize"), ElementsAre("7 cmd=finalize_ack rc=0"));
}

TEST_F(PmiProtocolTest, WhatOneRankPutsTheOtherGets) {
  Come(1, 0);
  Come(2, 1);
  EXPECT_THAT(Say(2, "cmd=get kvsname=kvs_a key=a"),
              ElementsAre("2 cmd=get_result rc=-1 msg=key_not_found value=unknown"));
  EXPECT_THAT(Say(1, "cmd=put kvsname=kvs_a key=a value=x=1 y$"),
              ElementsAre("1 cmd=put_result rc=0 msg=success"));
  EXPECT_THAT(Say(2, "cmd=get kvsname=kvs_a key=a"),
              ElementsAre("2 cmd=get_result rc=0 msg=success value=x=1 y$"));
  EXPECT_THAT(Say(1, absl::StrCat("cmd=put key=b value=", std::string(1024, 'x'))),
              ElementsAre("1 cmd=put_result rc=-1 msg=too_large"));
}

TEST_F(PmiProtocolTest, NobodyLeavesABarrierBeforeAllAreInIt) {
  Come(1, 0);
  Come(2, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Say(1, "cmd=barrier_in"), IsEmpty());
    EXPECT_THAT(Say(2, "cmd=barrier_in"),
                ElementsAre("1 cmd=barrier_out rc=0", "2 cmd=barrier_out rc=0"));
  }
}

TEST_F(PmiProtocolTest, ARankMayComeAgainOnceItHasGone) {
  Come(1, 0);
  EXPECT_THAT(Say(3, "cmd=initack pmiid=700"), ElementsAre("cut"));
  world_.Forget(1);
  EXPECT_EQ(Say(3, "cmd=initack pmiid=700").size(), 4u);
}

TEST_F(PmiProtocolTest, ARankThatGoesWithoutFinalizeWhileOthersWaitIsAFailure) {
  Come(1, 0);
  Come(2, 1);
  EXPECT_FALSE(world_.failure());
  world_.Forget(2);
  ASSERT_TRUE(world_.failure());
  EXPECT_EQ(world_.failure()->rank, 1);
  EXPECT_FALSE(world_.failure()->abort_code);
  Come(3, 1);
  EXPECT_FALSE(world_.failure()) << "it has come again";
  world_.Forget(3);
  Say(1, "cmd=finalize");
  EXPECT_FALSE(world_.failure()) << "nobody waits";
}

TEST_F(PmiProtocolTest, WhoHasFinalizedMayGo) {
  Come(1, 0);
  Come(2, 1);
  Say(2, "cmd=finalize");
  world_.Forget(2);
  EXPECT_FALSE(world_.failure());
}

TEST_F(PmiProtocolTest, AnAbortIsTakenWithItsCode) {
  Come(1, 0);
  Come(2, 1);
  EXPECT_THAT(Say(2, "cmd=abort exitcode=3"), IsEmpty());
  ASSERT_TRUE(world_.failure());
  EXPECT_EQ(world_.failure()->rank, 1);
  EXPECT_EQ(world_.failure()->abort_code, 3);
  world_.Forget(2);
  EXPECT_EQ(world_.failure()->abort_code, 3);
}

TEST_F(PmiProtocolTest, AnAbortStaysWhateverItsRanksDoNext) {
  Come(1, 0);
  Come(2, 1);
  Say(2, "cmd=abort exitcode=3");
  Say(1, "cmd=abort exitcode=4");
  for (const int client : {1, 2}) {
    Say(client, "cmd=finalize");
    world_.Forget(client);
    ASSERT_TRUE(world_.failure()) << "nobody waits";
  }
  Come(3, 1);
  ASSERT_TRUE(world_.failure()) << "it has come again";
  EXPECT_EQ(world_.failure()->rank, 1) << "the first";
  EXPECT_EQ(world_.failure()->abort_code, 3);
}

TEST_F(PmiProtocolTest, WhatItDoesNotKnowIsCutOff) {
  for (const char* line :
       {"cmd=initack pmiid=702", "cmd=initack pmiid=699", "cmd=initack pmiid=0",
        "cmd=initack pmiid=1", "cmd=initack pmiid=-2147483648", "cmd=initack pmiid=x",
        "cmd=get key=a", "", "mcmd=spawn", "===", "GET / HTTP/1.1"}) {
    EXPECT_THAT(Say(1, line), ElementsAre("cut")) << line;
  }
  Come(1, 0);
  EXPECT_THAT(Say(1, "mcmd=spawn"), ElementsAre("cut"));
  EXPECT_THAT(Say(1, "cmd=initack pmiid=701"), ElementsAre("cut"));
}

}  // namespace
}  // namespace tutti::launch
