// Parses what Slurm's controller says of its nodes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::cluster {

struct NodeState {
  std::string name, address;
  std::string state;   // in tutti's words: spec/types/node_state.h
  std::string reason;  // of Slurm or of who took it out; may be empty
  int cpus = 0, cpus_used = 0;
};

// Parses the output of `scontrol --oneliner show node`. Lines that describe no node are left out.
std::vector<NodeState> ReadNodeStates(absl::string_view text);

}  // namespace tutti::cluster
