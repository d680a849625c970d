#include "platform/engine/data_wish.h"

#include <algorithm>
#include <set>

#include "absl/strings/string_view.h"

namespace tutti::engine {
namespace {

constexpr size_t kMostOfNames = 64 << 10;  // bytes; Linux takes twice that as one argument

// Returns for how many such jobs the node has room.
int SlotsOf(const NodeWithRoom& node, int cpus) {
  if (cpus <= 0) return node.is_whole ? 1 : 0;
  return node.idle_cpus / cpus;
}

}  // namespace

std::vector<std::string> NodesToLeaveOut(const std::vector<NodeWithRoom>& all, const DataWish& wish,
                                         int claimed) {
  const std::set<absl::string_view> preferred(wish.nodes.begin(), wish.nodes.end());
  std::vector<std::string> others;
  size_t bytes = 0;
  int with_room = 0, slots = 0;
  for (const NodeWithRoom& node : all) {
    if (!preferred.contains(node.name)) {
      bytes += node.name.size() + 1;
      others.push_back(node.name);
      continue;
    }
    const bool is_left = std::find(wish.being_left.begin(), wish.being_left.end(), node.name) !=
                         wish.being_left.end();
    const int of_node = std::max(SlotsOf(node, wish.cpus), is_left ? 1 : 0);
    with_room += of_node > 0 ? 1 : 0;
    slots += of_node;
  }
  const bool has_room = with_room >= wish.count && slots - claimed >= wish.count;
  if (!has_room || bytes > kMostOfNames) others.clear();
  return others;
}

}  // namespace tutti::engine
