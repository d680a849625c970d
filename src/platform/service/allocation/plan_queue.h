// Names the queue of SharedState::plan_work in which a step's inputs are read before it starts.
// Those who read from the same mounts that may need a file server share a few queues; how many of
// these are busy for one mount is bounded beside (PlanTurns). What lies on this machine's own file
// systems hangs for nobody, and may take hours to read: there each pipeline has a few of its own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/machine/mounts.h"

namespace tutti::service {

// Each pipeline has so many queues, and each set of mounts; as many of a mount are busy at a time.
inline constexpr int kPlanQueues = 4;

struct PlanPlace {
  std::string queue;
  std::set<std::string> mounts;  // from which it reads, of those that may need a server
};

// Returns the place of a step of that pipeline whose inputs are at these absolute paths or
// addresses. Steps that read the same inputs come one after the other: the first reads them, and
// those behind it find the hashes. What lies below `own`, the folder of the service's results,
// counts as this machine's: no pipeline goes on without it. Follows links of local file systems.
PlanPlace PlaceOfPlan(const std::string& pipeline, const std::vector<std::string>& inputs,
                      const std::string& own, const std::vector<base::Mount>& mounts);

}  // namespace tutti::service
