// NodeList holds the nodes of all computes as users see them.
#pragma once

#include <string>
#include <vector>

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

struct NodeList {
  std::vector<NodeStatus> nodes;
  std::vector<std::string> warnings;  // of computes that cannot tell theirs now
};

}  // namespace tutti::service
