// Makes the allocation that a service would have an engine start, for tests.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/engine/engine.h"

namespace tutti::engine {

// Makes an allocation on the first `size` of these nodes, with one process on each.
inline Allocation GangOn(const std::vector<Node>& nodes, const std::string& id, int size) {
  Allocation allocation{.id = id};
  allocation.plan.allocation_id = id;
  for (int i = 0; i < size; ++i) {
    allocation.plan.nodes.push_back({nodes[i].name, nodes[i].address, i, 1});
    allocation.nodes.push_back(
        {.node_index = i, .directory = absl::StrCat(nodes[i].directory, "/", id)});
  }
  return allocation;
}

}  // namespace tutti::engine
