// Writes Slurm's configuration files for a cluster, as pure functions of its description and of the
// facts about its hosts. All of them lie on the controller, which gives them to the nodes
// ("configless").
#pragma once

#include <string>
#include <vector>

#include "platform/cluster/description.h"
#include "platform/cluster/host_facts.h"

namespace tutti::cluster {

// Returns slurm.conf; `facts`: of all hosts of the description.
std::string SlurmConf(const Description& wanted, const std::vector<HostFacts>& facts);
std::string CgroupConf(const Description& wanted, const std::vector<HostFacts>& facts);
std::string GresConf(const Description& wanted, const std::vector<HostFacts>& facts);
std::string SlurmdbdConf(const AccountingDatabase& database, const HostFacts& controller);

// Returns the facts of `host`; nullptr if there are none.
const HostFacts* FactsOf(const std::vector<HostFacts>& facts, const std::string& host);

// Returns "v1" or "v2" where Slurm can use it there, or "".
std::string UsableCgroup(const HostFacts& host);
// Returns the version of cgroups by which Slurm tracks and limits processes: one that all nodes can
// use, or "".
std::string CommonCgroup(const Description& wanted, const std::vector<HostFacts>& facts);

// Returns what Slurm may give of it to jobs: kernels differ in what they keep, and a node with less
// than slurm.conf says is drained.
int64_t UsableMemory(int64_t memory_mib);

}  // namespace tutti::cluster
