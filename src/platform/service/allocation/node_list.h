// NodeList holds the nodes of all computes as users see them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/engine/engine.h"
#include "platform/scheduler/resources.h"

namespace tutti::service {

struct NodeStatus {
  std::string compute;
  engine::Node node;
  std::string cordoned_by;  // "user", "check" or "jobs"; empty: it is not
  std::string job;          // that holds it, or one of those of this service on it; empty: none
  std::vector<std::string> jobs = {};  // all of this service's on it
  scheduler::Resources used = {};      // of a node of this machine
};

// Returns the node's state as users read it: its cluster's word; of this machine's "idle",
// "running" or "cordoned".
inline absl::string_view StateOf(const NodeStatus& node) {
  if (!node.node.state.empty()) return node.node.state;
  return node.job.empty() ? "idle" : "running";
}

struct NodeList {
  std::vector<NodeStatus> nodes;
  std::vector<std::string> warnings;  // of computes that cannot tell theirs now
};

}  // namespace tutti::service
