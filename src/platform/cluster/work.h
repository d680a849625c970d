// Carries out the steps that plan.h planned, on many hosts at the same time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/cluster/description.h"
#include "platform/cluster/host_facts.h"
#include "platform/cluster/plan.h"
#include "platform/cluster/remote.h"
#include "platform/cluster/slurm_nodes.h"
#include "platform/cluster/upgrade.h"

namespace tutti::cluster {

// Report is called for each step that has ended, one at a time: the host, what was done, and how it
// ended.
using Report =
    std::function<void(const std::string& host, const std::string& what, const std::string& how)>;

// Calls `act` for each host, up to 128 at a time; the first error's code with every host's message,
// a line each.
absl::Status OnEach(const std::vector<std::string>& hosts,
                    const std::function<absl::Status(size_t index)>& act);

// Returns Slurm's nodes, as the controller tells of them now.
absl::StatusOr<std::vector<NodeState>> AskNodeStates(Remote& remote, const std::string& controller);

// Probes the hosts at the same time. The results are in the order of `hosts`, each with the reason
// if a host cannot be probed.
std::vector<absl::StatusOr<HostFacts>> ProbeEach(Remote& remote,
                                                 const std::vector<std::string>& hosts);
// Returns the facts of all hosts, or an error that says why not.
absl::StatusOr<std::vector<HostFacts>> Probe(Remote& remote, const std::vector<std::string>& hosts);

// Returns the packages of all hosts, or an error. Aborted where apt cannot say what there is.
absl::StatusOr<std::vector<HostPackages>> ProbePackages(Remote& remote,
                                                        const std::vector<std::string>& hosts);

// Carries the steps out stage by stage; those of one host one after the other. Nothing follows a
// stage that failed.
absl::Status CarryOut(Remote& remote, const std::vector<Step>& steps, const Report& report);

// Waits until Slurm can use all nodes of the description but those that someone has set aside:
// drained, or in a maintenance reservation. These, by Slurm's name, with "drained by root (why)".
absl::StatusOr<std::map<std::string, std::string>> AwaitNodes(Remote& remote,
                                                              const Description& description,
                                                              const std::vector<HostFacts>& facts,
                                                              base::Deadline deadline);

// Runs `srun hostname` over these hosts; returns the number of nodes that answered with their
// names.
absl::StatusOr<int> TryNodes(Remote& remote, const std::string& controller,
                             const std::vector<HostFacts>& nodes);

}  // namespace tutti::cluster
