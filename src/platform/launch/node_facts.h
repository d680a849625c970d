// What this node adds to the environment of its processes.
#pragma once

#include "platform/launch/environment.h"
#include "platform/launch/staging.h"

namespace tutti::launch {

// Looks at this process: its environment, its processors, where its program lies; and at the
// machine's GPUs, unless whoever started the launcher gave it some by CUDA_VISIBLE_DEVICES.
NodeFacts FactsOfThisNode();
// And what was staged on it.
NodeFacts With(const Staged& staged, NodeFacts facts);

}  // namespace tutti::launch
