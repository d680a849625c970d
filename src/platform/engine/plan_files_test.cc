#include "platform/engine/plan_files.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/engine/gang_for_tests.h"

namespace tutti::engine {
namespace {

class PlanFilesTest : public ::testing::Test {
 protected:
  static Allocation Gang(int size) {
    std::vector<Node> nodes;
    for (int i = 0; i < size; ++i) {
      nodes.push_back({.name = absl::StrCat("node-", i),
                       .address = absl::StrCat("10.1.", i / 250, ".", 1 + i % 250),
                       .directory = absl::StrCat("/scratch/tutti/node-", i)});
    }
    return GangOn(nodes, "patient_heron.1", size);
  }

  // Writes all plans of a gang of so many nodes; returns how many bytes they have together.
  size_t BytesOf(int size) const {
    const std::filesystem::path shared = folder_.path() / absl::StrCat(size, ".json");
    const Allocation gang = Gang(size);
    EXPECT_TRUE(WriteSharedPlan(gang, shared).ok());
    size_t bytes = std::filesystem::file_size(shared);
    for (const spec::NodePart& node : gang.nodes) bytes += PlanText(gang, node, shared).size();
    return bytes;
  }

  const base::TemporaryDirectory folder_{"plans"};
};

TEST_F(PlanFilesTest, ThePlansOfAGangGrowWithItsNodesAndNotWithTheirSquare) {
  constexpr size_t kOfAGang = 2048, kOfANode = 320;  // what all have once, and what one more adds
  for (const int size : {10, 100, 1000})
    EXPECT_LE(BytesOf(size), kOfAGang + size * kOfANode) << size;
}

TEST_F(PlanFilesTest, WhoeverIsAloneHasAllInHisOwnPlan) {
  const Allocation alone = Gang(1);
  const std::filesystem::path shared = folder_.path() / "shared.json";
  ASSERT_TRUE(WriteSharedPlan(alone, shared).ok());
  EXPECT_FALSE(std::filesystem::exists(shared));
  const auto plan = folder_.path() / "plan.json";
  ASSERT_TRUE(base::WriteFileAtomic(plan, PlanText(alone, alone.nodes[0], shared)).ok());
  EXPECT_EQ(spec::ReadLaunchPlan(plan)->nodes.size(), 1u);
}

}  // namespace
}  // namespace tutti::engine
