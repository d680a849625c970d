#include "platform/service/health/cluster_cordons.h"

#include <gmock/gmock.h>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ClusterCordons, AreOfOneComputeAndGoByThemselves) {
  ClusterCordons cordons;
  EXPECT_TRUE(cordons.Add("hpc", "n2", "disk: full", absl::Minutes(1)));
  EXPECT_TRUE(cordons.Add("hpc", "n1", "gpu: GPU 0 is gone", absl::Minutes(2)));
  EXPECT_TRUE(cordons.Add("other", "n3", "link: eth0 is down", absl::Minutes(2)));
  EXPECT_FALSE(cordons.Add("hpc", "n1", "gpu: GPU 1 is gone", absl::Minutes(2)));
  EXPECT_THAT(cordons.NodesOf("hpc"), ElementsAre("n1", "n2"));
  EXPECT_THAT(cordons.NodesOf("hp"), IsEmpty());
  EXPECT_EQ(*cordons.Find("hpc", "n1"), "gpu: GPU 1 is gone");
  EXPECT_EQ(cordons.Find("other", "n1"), nullptr);
  cordons.Expire(absl::Minutes(1) + ClusterCordons::kLimit);
  EXPECT_THAT(cordons.NodesOf("hpc"), ElementsAre("n1"));
  EXPECT_TRUE(cordons.Remove("hpc", "n1"));
  EXPECT_FALSE(cordons.Remove("hpc", "n1"));
  EXPECT_EQ(cordons.all().size(), 1u);
}

}  // namespace
}  // namespace tutti::service
