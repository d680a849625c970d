#include "runtime/comm/group/rank_placement.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace tutti::comm {
namespace {

Table On(const std::vector<int>& nodes) {
  Table table;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    Hello hello;
    hello.rank = static_cast<int>(rank);
    hello.node = nodes[rank];
    hello.host = "host of node " + std::to_string(nodes[rank]);
    table.ranks.push_back(hello);
  }
  return table;
}

TEST(Placement, NodesAreInTheOrderOfTheirFirstRanks) {
  const Table table = On({5, 2, 5, 2, 7, 7});
  for (const auto& [rank, node, local] :
       std::vector<std::array<int, 3>>{{0, 0, 0}, {1, 1, 0}, {2, 0, 1}, {3, 1, 1}, {5, 2, 1}}) {
    const Placement place = PlacementOf(table, rank);
    EXPECT_EQ(place.node_rank, node);
    EXPECT_EQ(place.local_rank, local);
    EXPECT_EQ(place.local_size, 2);
    EXPECT_EQ(place.node_count, 3);
    EXPECT_TRUE(place.homogeneous);
  }
}

TEST(Placement, NodesWithUnequallyManyRanksAreNotHomogeneous) {
  const Placement place = PlacementOf(On({0, 0, 1}), 2);
  EXPECT_FALSE(place.homogeneous);
  EXPECT_EQ(place.local_size, 1);
}

TEST(Placement, RanksThatCannotShareMemoryAreOfDifferentNodesWhateverTheySay) {
  Table table = On({0, 0});
  table.ranks[1].host = "another";
  EXPECT_EQ(PlacementOf(table, 0).node_count, 2);
}

}  // namespace
}  // namespace tutti::comm
