// A compute of type slurm, as site.yml describes it (docs/slurm.md). Plain values: what is empty or
// zero is left to Slurm.
#pragma once

#include <string>
#include <vector>

namespace tutti::spec {

class Diagnostics;
struct YamlNode;

struct SlurmCompute {
  std::string folder;  // absolute, the same on this machine and on every node
  std::string partition, account, qos, constraint, gres, reservation;
  std::string time;       // --time of a job that has no limits.timeout, in Slurm's words
  std::string memory;     // --mem of a node, in Slurm's words
  int cpus_per_node = 0;  // 0: one for each process
  bool exclusive = false;
  std::vector<std::string> options;  // further ones of sbatch, as they are
};

// `folder`: what relative paths count from.
SlurmCompute ReadSlurmCompute(const YamlNode& node, const std::string& name,
                              const std::string& folder, Diagnostics& diagnostics);

}  // namespace tutti::spec
