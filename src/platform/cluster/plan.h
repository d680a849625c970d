// Plans the steps that turn hosts, as they are, into the cluster that is wanted: a pure function.
// Nothing that is as it should be gets a step, so that a plan for a cluster that stands is empty.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/cluster/description.h"
#include "platform/cluster/host_facts.h"

namespace tutti::cluster {

// Stages follow each other; within one, hosts are worked on at the same time.
enum class Stage { kPackages, kKey, kDatabase, kController, kNodes };

struct Step {
  Stage stage = Stage::kPackages;
  std::string host;
  std::string what;  // "install slurmd"
  std::string
      script;  // of the shell, as root on the host; ends with another code than 0 if it fails
};

struct Plan {
  std::vector<Step> steps;         // by stage
  std::vector<std::string> notes;  // what the user should know, one sentence each
};

// Makes the plan; `facts`: of all hosts of the description. FailedPrecondition says what stands
// against it, a line for each host, with its remedy.
absl::StatusOr<Plan> MakePlan(const Description& wanted, const std::vector<HostFacts>& facts);

// Checks whose Slurm that is; FailedPrecondition, a line for each host, unless Slurm on these hosts
// is this cluster's: proven by its munge key. A host without Slurm is nobody's.
absl::Status CheckOwned(const Description& wanted, const std::vector<HostFacts>& facts);

// Ends the daemons of hosts and removes what tutti made there; packages and logs stay, and so does
// all that is not this cluster's. Errors of CheckOwned.
absl::StatusOr<std::vector<Step>> PlanRemoval(const Description& wanted,
                                              const std::vector<HostFacts>& facts);

}  // namespace tutti::cluster
