// Translates Slurm's states of nodes into tutti's: idle, running, preparing (it comes), leaving (it
// finishes what it has), unusable; and off: a node that comes when it is needed.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns the state for one of Slurm's, as scontrol prints it ("IDLE+CLOUD+POWERED_DOWN") or sinfo
// ("idle~").
std::string StateOfSlurmNode(absl::string_view slurm_state);

}  // namespace tutti::spec
