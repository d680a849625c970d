// Finds what this node adds to the environment of its processes.
#pragma once

#include "platform/launch/environment/process_environment.h"

namespace tutti::launch {

// Looks at this process: its environment, its processors, where its program lies; and at the
// machine's GPUs, unless whoever started the launcher gave it some by CUDA_VISIBLE_DEVICES; and for
// podman's CDI file for GPUs.
NodeFacts FactsOfThisNode();

}  // namespace tutti::launch
