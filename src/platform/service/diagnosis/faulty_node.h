// Finds the nodes on which an attempt failed for a reason that may be theirs, and not the job's:
// its launcher was lost, could not prepare since the node's disk does not do, or found the node to
// be ill. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/service/diagnosis/diagnosis.h"

namespace tutti::service {

// Returns whether a launcher that could not prepare says so of its disk: it is full, or broken.
bool SpeaksOfABrokenDisk(absl::string_view reason);

struct NodeFault {
  std::string node;
  std::string what;
};
std::vector<NodeFault> NodeFaultsOf(const GangEnd& end);

// Returns the nodes that the next attempt had better not have. None if they are a whole gang: then
// nothing is known of any one of them.
std::vector<std::string> NodesToAvoid(const GangEnd& end);

}  // namespace tutti::service
