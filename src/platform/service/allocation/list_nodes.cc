#include "platform/service/allocation/list_nodes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/service/attempt/node_room.h"

namespace tutti::service {
namespace {

struct Holders {
  std::vector<std::string> jobs;
  scheduler::Resources used;
  bool has_all = false;  // one of them
};
using HoldersByNode = std::map<std::pair<std::string, std::string>, Holders>;  // by compute, node

void NoteHolder(const std::string& compute, const std::vector<PlacedNode>& nodes,
                const std::string& job, HoldersByNode& holders) {
  for (const PlacedNode& node : nodes) {
    Holders& of_node = holders[{compute, node.name}];
    of_node.jobs.push_back(job);
    const auto part = PartOf(node);
    of_node.has_all |= !part;
    if (part) of_node.used += *part;
  }
}

HoldersByNode HoldersOf(const JobTable& table, const LeavingAllocations& leaving)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  HoldersByNode holders;
  for (const LiveJob* job : table.placed()) {
    const store::Job& fixed = job->record.job;
    NoteHolder(fixed.spec.compute, job->placed->placement.nodes, fixed.id, holders);
  }
  for (const auto& [allocation, left] : leaving.all()) {
    NoteHolder(left.compute, left.nodes, JobOfAllocation(allocation), holders);
  }
  return holders;
}

}  // namespace

NodeList ListNodes(SharedState& state, const JobTable& table, const LeavingAllocations& leaving) {
  std::vector<std::pair<std::string, absl::StatusOr<std::vector<engine::Node>>>> told;
  told.reserve(state.engines.clusters.size() + 1);
  for (const auto& [compute, engine] : state.engines.clusters) {
    told.emplace_back(compute, engine->ListNodes());
  }
  StateLock lock(state);
  told.emplace(told.begin(), "local", state.nodes);
  HoldersByNode holders = HoldersOf(table, leaving);
  NodeList list;
  for (const auto& [compute, nodes] : told) {
    if (!nodes.ok()) {
      list.warnings.push_back(absl::StrCat("the nodes of compute ", compute,
                                           " are not known: ", nodes.status().message()));
      continue;
    }
    for (const engine::Node& node : *nodes) {
      Holders& held = holders[{compute, node.name}];
      std::sort(held.jobs.begin(), held.jobs.end());  // one look like another
      NodeStatus& status = list.nodes.emplace_back();
      status = {compute, node, "", held.jobs.empty() ? "" : held.jobs.front()};
      status.jobs = std::move(held.jobs);
      if (compute != "local") {
        if (const std::string* const ill = state.cluster_cordons.Find(compute, node.name)) {
          status.node.state = "cordoned";
          status.node.reason = *ill;
          status.cordoned_by = "check";
        }
        continue;
      }
      status.used = held.has_all ? RoomOf(node) : held.used;
      const auto cordon = state.cordons.find(node.name);
      if (cordon == state.cordons.end()) continue;
      status.node.state = "cordoned";
      status.node.reason = cordon->second.reason;
      status.cordoned_by = std::string(Name(cordon->second.author));
    }
  }
  return list;
}

}  // namespace tutti::service
