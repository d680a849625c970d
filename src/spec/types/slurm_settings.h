// SlurmSettings is what a compute of type slurm, and a job, may ask of Slurm
// (docs/slurm/README.md). Plain values: what is empty or zero is left to Slurm.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tutti::spec {

struct SlurmSettings {
  std::string partition, account, qos, constraint, gres, reservation;
  std::string time;       // --time, in Slurm's words; a compute's: without limits.timeout
  std::string memory;     // --mem of a node, in Slurm's words
  int cpus_per_node = 0;  // 0: one for each process
  std::optional<bool> exclusive;
  std::vector<std::string> options;  // further ones of sbatch, as they are
  // For a script (batch_script.h), the options of sbatch that say how much it asks for. They
  // replace those that follow from the job's nodes and processes.
  std::vector<std::string> shape;

  bool operator==(const SlurmSettings&) const = default;
};

// A setting whose value goes to sbatch as it is: `--OPTION=VALUE`. A line in kSlurmTexts, and the
// member, is what such a setting needs: the readers of computes, jobs and #SBATCH, the merge of
// both, JSON and the command go by it. docs/slurm/README.md and the text of `resources.properties`
// in spec/text/azure_keys.cc name it.
struct SlurmText {
  const char* key;     // of site.yml and of a job's resources.properties.slurm
  const char* option;  // sbatch's
  std::string SlurmSettings::*member;
};
inline constexpr SlurmText kSlurmTexts[] = {
    {"partition", "partition", &SlurmSettings::partition},
    {"account", "account", &SlurmSettings::account},
    {"qos", "qos", &SlurmSettings::qos},
    {"constraint", "constraint", &SlurmSettings::constraint},
    {"gres", "gres", &SlurmSettings::gres},
    {"reservation", "reservation", &SlurmSettings::reservation},
    {"time", "time", &SlurmSettings::time},
    {"memory", "mem", &SlurmSettings::memory},
};

// Returns a compute's settings with a job's over them: what the job leaves out is the compute's,
// and what it says "none" of is left to Slurm.
SlurmSettings Over(SlurmSettings compute, const SlurmSettings& job);

// Returns what of them asks for GPUs: "gres gpu:4", "--gpus-per-node=2"; "" if nothing does.
std::string GpusAskedFor(const SlurmSettings& settings);

}  // namespace tutti::spec
