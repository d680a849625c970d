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
    const auto share = NodeShareOf(node);
    of_node.has_all |= !share;
    if (share) of_node.used += *share;
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

NodeStatus StatusOf(const std::string& compute, const engine::Node& node, Holders& held) {
  std::sort(held.jobs.begin(), held.jobs.end());  // one look like another
  NodeStatus status{compute, node, "", held.jobs.empty() ? "" : held.jobs.front()};
  status.jobs = std::move(held.jobs);
  return status;
}

void VisitLocalNodes(const SharedState& state, HoldersByNode& holders,
                     const std::function<void(const LocalNode&)>& visit)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
  for (const engine::Node& node : state.nodes) {
    Holders& held = holders[{"local", node.name}];
    std::sort(held.jobs.begin(), held.jobs.end());
    const auto cordon = state.cordons.find(node.name);
    visit({.node = node,
           .jobs = held.jobs,
           .used = held.has_all ? RoomOf(node) : held.used,
           .cordon = cordon == state.cordons.end() ? nullptr : &cordon->second});
  }
}

}  // namespace

NodeStatus StatusOf(const LocalNode& node) {
  NodeStatus status{"local", node.node, "", node.jobs.empty() ? "" : node.jobs.front()};
  status.jobs = node.jobs;
  status.used = node.used;
  if (node.cordon == nullptr) return status;
  status.node.state = "cordoned";
  status.node.reason = node.cordon->reason;
  status.cordoned_by = std::string(Name(node.cordon->author));
  return status;
}

void VisitLocalNodes(const SharedState& state, const JobTable& table,
                     const LeavingAllocations& leaving,
                     const std::function<void(const LocalNode&)>& visit) {
  HoldersByNode holders = HoldersOf(table, leaving);
  VisitLocalNodes(state, holders, visit);
}

NodeList ListNodes(SharedState& state, const JobTable& table, const LeavingAllocations& leaving) {
  std::vector<std::pair<std::string, absl::StatusOr<std::vector<engine::Node>>>> told;
  told.reserve(state.engines.clusters.size());
  for (const auto& [compute, engine] : state.engines.clusters) {
    told.emplace_back(compute, engine->ListNodes());
  }
  StateLock lock(state);
  HoldersByNode holders = HoldersOf(table, leaving);
  NodeList list;
  VisitLocalNodes(state, holders,
                  [&](const LocalNode& node) { list.nodes.push_back(StatusOf(node)); });
  for (const auto& [compute, nodes] : told) {
    if (!nodes.ok()) {
      list.warnings.push_back(absl::StrCat("the nodes of compute ", compute,
                                           " are not known: ", nodes.status().message()));
      continue;
    }
    for (const engine::Node& node : *nodes) {
      NodeStatus& status =
          list.nodes.emplace_back(StatusOf(compute, node, holders[{compute, node.name}]));
      if (const std::string* const ill = state.cluster_cordons.Find(compute, node.name)) {
        status.node.state = "cordoned";
        status.node.reason = *ill;
        status.cordoned_by = "check";
      }
    }
  }
  return list;
}

}  // namespace tutti::service
