#include "platform/launch/data/gang_peers.h"

#include <gmock/gmock.h>

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;

spec::LaunchPlan Gang() {
  spec::LaunchPlan plan;
  plan.node_index = 1;
  plan.nodes = {{"a", "10.0.0.1", 0, 1}, {"b", "10.0.0.2", 1, 1}};
  plan.master_port = 10'000;
  plan.job_token = "secret";
  return plan;
}

TEST(GangPeers, AreTheNodesThatHaveFoldersOfTheirOwn) {
  const auto peers = GangPeers(Gang());
  ASSERT_TRUE(peers.has_value());
  EXPECT_EQ(peers->node, 1);
  EXPECT_EQ(peers->port, 10'001);
  EXPECT_EQ(peers->token, "secret");
  EXPECT_THAT(peers->addresses, ElementsAre("10.0.0.1", "10.0.0.2"));
}

TEST(GangPeers, AreNoneWhereThereIsOneFolderOrNobodyElse) {
  spec::LaunchPlan shared = Gang(), here = Gang(), alone = Gang(), one_machine = Gang();
  shared.shared_folder = "/shared";
  here.boot_id = "this start";
  alone.nodes.pop_back();
  alone.node_index = 0;
  one_machine.nodes[1].address = "10.0.0.1";
  for (const spec::LaunchPlan& plan : {shared, here, alone, one_machine}) {
    EXPECT_FALSE(GangPeers(plan).has_value());
  }
}

}  // namespace
}  // namespace tutti::launch
