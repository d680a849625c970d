#include "platform/service/monitoring/cluster_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Without threads a cluster answers within the call that has it asked.
class ClusterNodesTest : public ::testing::Test {
 protected:
  std::map<std::string, int64_t> Look() {
    return world_.service().Monitor({}).computes.at("hpc").nodes;
  }

  base::TemporaryDirectory folder_;
  FakeCluster cluster_;
  World world_{folder_.path(), {}, 1, &cluster_};
};

TEST_F(ClusterNodesTest, AreCountedByTheirStates) {
  cluster_.nodes = std::vector<engine::Node>{{.name = "a", .cores = {0, 1}, .state = "idle"},
                                             {.name = "b", .cores = {0, 1}, .state = "running"},
                                             {.name = "c", .cores = {0, 1}, .state = "idle"}};
  EXPECT_THAT(Look(), ElementsAre(Pair("idle", 2), Pair("running", 1)));
  EXPECT_EQ(world_.service().Monitor({}).computes.at("hpc").has.cores, 6);
}

TEST_F(ClusterNodesTest, AClusterIsAskedNowAndThenAndWhatItSaidHoldsForAWhile) {
  cluster_.nodes = std::vector<engine::Node>{{.name = "a", .state = "idle"}};
  EXPECT_THAT(Look(), ElementsAre(Pair("idle", 1)));
  cluster_.nodes = std::vector<engine::Node>{{.name = "a", .state = "unusable"}};
  EXPECT_THAT(Look(), ElementsAre(Pair("idle", 1))) << "it was asked just now";
  world_.clock().Advance(ClusterNodes::kFresh);
  EXPECT_THAT(Look(), ElementsAre(Pair("unusable", 1)));
  cluster_.nodes = absl::UnavailableError("sinfo does not answer");
  world_.clock().Advance(ClusterNodes::kHolds - absl::Seconds(1));
  EXPECT_THAT(Look(), ElementsAre(Pair("unusable", 1)));
  world_.clock().Advance(absl::Seconds(1));
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(ClusterNodesTest, AClusterWhoseAnswerFailsBadlyIsAskedAgain) {
  cluster_.nodes = std::vector<engine::Node>{{.name = "a", .state = "idle"}};
  cluster_.during_list = [] { throw std::runtime_error("not JSON"); };
  EXPECT_THAT(Look(), IsEmpty());
  cluster_.during_list = nullptr;
  EXPECT_THAT(Look(), IsEmpty()) << "it was asked just now";
  world_.clock().Advance(ClusterNodes::kFresh);
  EXPECT_THAT(Look(), ElementsAre(Pair("idle", 1)));
}

}  // namespace
}  // namespace tutti::service
