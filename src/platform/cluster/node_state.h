// Slurm's nodes in the words of tutti: idle, running, preparing, unusable (with the reason),
// leaving; and off: a node of an autoscaled cluster that is not there now.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::cluster {

struct NodeState {
  std::string name, address;
  std::string state;   // one of the words above
  std::string reason;  // of Slurm or of who took it out; may be empty
  int cpus = 0, cpus_used = 0;
};

// Of "IDLE+CLOUD+POWERED_DOWN", as scontrol prints a state.
std::string StateInWords(absl::string_view slurm_state);

// Of `scontrol --oneliner show node`; lines that are none are left out.
std::vector<NodeState> ReadNodeStates(absl::string_view text);

}  // namespace tutti::cluster
