#include "runtime/comm/group/rank_placement.h"

#include <algorithm>
#include <vector>

namespace tutti::comm {

bool SameNode(const Hello& a, const Hello& b) { return a.node == b.node && a.host == b.host; }

Placement PlacementOf(const Table& table, int rank) {
  std::vector<const Hello*> nodes;  // the first rank of each
  std::vector<int> sizes;
  Placement place;
  for (const Hello& hello : table.ranks) {
    const auto known = std::find_if(nodes.begin(), nodes.end(),
                                    [&](const Hello* first) { return SameNode(*first, hello); });
    const size_t node = static_cast<size_t>(known - nodes.begin());
    if (known == nodes.end()) {
      nodes.push_back(&hello);
      sizes.push_back(0);
    }
    if (hello.rank == rank) {
      place.node_rank = static_cast<int>(node);
      place.local_rank = sizes[node];
    }
    ++sizes[node];
  }
  place.local_size = sizes[place.node_rank];
  place.node_count = static_cast<int>(nodes.size());
  place.homogeneous =
      std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == sizes.front(); });
  return place;
}

}  // namespace tutti::comm
