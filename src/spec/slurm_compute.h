// A compute of type slurm, as site.yml describes it, and what a job asks of it (docs/slurm.md).
// Plain values: what is empty or zero is left to Slurm.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tutti::spec {

class Diagnostics;
struct YamlNode;

struct SlurmSettings {
  std::string partition, account, qos, constraint, gres, reservation;
  std::string time;       // --time, in Slurm's words; a compute's: without limits.timeout
  std::string memory;     // --mem of a node, in Slurm's words
  int cpus_per_node = 0;  // 0: one for each process
  std::optional<bool> exclusive;
  std::vector<std::string> options;  // further ones of sbatch, as they are
  // Of a script (batch_script.h): the options of sbatch that say how much it asks for, in place of
  // those that follow from the job's nodes and processes.
  std::vector<std::string> shape;

  bool operator==(const SlurmSettings&) const = default;
};

// A compute's settings with a job's over them: what the job leaves out is the compute's, and what
// it says "none" of is left to Slurm.
SlurmSettings Over(SlurmSettings compute, const SlurmSettings& job);

// What of them asks for GPUs: "gres gpu:4", "--gpus-per-node=2"; "" if nothing does.
std::string GpusAskedFor(const SlurmSettings& settings);

// How launchers reach the service. kUnsaid: by the folder if the service listens for its own
// machine only.
enum class Reach { kUnsaid, kService, kFolder };

struct SlurmCompute : SlurmSettings {
  std::string folder;  // absolute, the same here and on every node; or "node:…" (node_folder.h)
  Reach reach = Reach::kUnsaid;
  // By the name of a priority ("high"), the QOS of jobs that have it and name none themselves.
  std::map<std::string, std::string> priority_qos;
};

// `what` names the mapping in errors.
SlurmSettings ReadSlurmSettings(const YamlNode& node, const std::string& what,
                                Diagnostics& diagnostics);

// `folder`: what relative paths count from.
SlurmCompute ReadSlurmCompute(const YamlNode& node, const std::string& name,
                              const std::string& folder, Diagnostics& diagnostics);

}  // namespace tutti::spec
