// NodeList holds the nodes of all computes as users see them.
#pragma once

#include <string>
#include <vector>

#include "platform/engine/engine.h"

namespace tutti::service {

struct NodeStatus {
  std::string compute;
  engine::Node node;
  std::string cordoned_by;  // "user", "check" or "jobs"; empty: it is not
  std::string job;          // that holds it, or one of those of this service on it; empty: none
};

struct NodeList {
  std::vector<NodeStatus> nodes;
  std::vector<std::string> warnings;  // of computes that cannot tell theirs now
};

}  // namespace tutti::service
