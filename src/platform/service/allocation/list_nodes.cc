#include "platform/service/allocation/list_nodes.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tutti::service {

NodeList ListNodes(SharedState& state, const JobTable& table, const LeavingAllocations& leaving) {
  std::vector<std::pair<std::string, absl::StatusOr<std::vector<engine::Node>>>> told;
  for (const auto& [compute, engine] : state.engines.clusters) {
    told.emplace_back(compute, engine->ListNodes());
  }
  StateLock lock(state);
  told.emplace(told.begin(), "local", state.nodes);
  std::map<std::pair<std::string, std::string>, std::string> holders;  // by compute and node
  for (const auto& [allocation, left] : leaving.all()) {
    for (const std::string& node : left.nodes) {
      holders[{left.compute, node}] = JobOfAllocation(allocation);
    }
  }
  for (const LiveJob* job : table.placed()) {
    const store::Job& fixed = job->record.job;
    for (const PlacedNode& node : job->placed->placement.nodes) {
      holders[{fixed.spec.compute, node.name}] = fixed.id;
    }
  }
  NodeList list;
  for (const auto& [compute, nodes] : told) {
    if (!nodes.ok()) {
      list.warnings.push_back(absl::StrCat("the nodes of compute ", compute,
                                           " are not known: ", nodes.status().message()));
      continue;
    }
    for (const engine::Node& node : *nodes) {
      NodeStatus& status = list.nodes.emplace_back();
      status = {compute, node, "", holders[{compute, node.name}]};
      const auto cordon = state.cordons.find(node.name);
      if (compute != "local" || cordon == state.cordons.end()) continue;
      status.node.state = "cordoned";
      status.node.reason = cordon->second.reason;
      status.cordoned_by = std::string(Name(cordon->second.author));
    }
  }
  return list;
}

}  // namespace tutti::service
