// Turns an allocation into a Slurm job: the command line of sbatch and the batch script. Pure
// functions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/engine/engine.h"
#include "spec/site/slurm_compute.h"

namespace tutti::engine {

// The file in an allocation's folder to which its batch step prints.
inline constexpr char kBatchLog[] = "slurm.log";

struct BatchJob {
  std::string comment;           // names the allocation; what it is found by
  std::filesystem::path folder;  // the allocation's, shared with the nodes
  std::string program;           // of the launcher up to the plan, quoted for a shell
  bool shared = true;            // false: the folder is this machine's alone (unshared_job.h)
  // Removes the containers that a launcher has left when it died; likewise up to the folder.
  std::string remover = {};
};

// Returns sbatch with everything but the environment; `settings`: the compute's with the
// allocation's over them. Where the job does not say its --time, that is later than the job's own
// limit, which its launchers keep; a minute ahead of it they are told by SIGTERM. With `--exclude`
// of what the allocation avoids, in one option with the nodes that its settings exclude.
std::vector<std::string> SbatchCommand(const spec::SlurmSettings& settings,
                                       const Allocation& allocation, const BatchJob& job);

// Returns the command with these nodes excluded too, in one option: of two sbatch takes the last
// one alone.
std::vector<std::string> Excluding(std::vector<std::string> sbatch,
                                   const std::vector<std::string>& nodes);
// Returns the names that the command excludes, as one list; "" if it excludes none.
std::string ExcludedBy(const std::vector<std::string>& sbatch);

// Returns the processors that it asks for of each node; 0: all, of nodes that nobody else has.
int CpusOfNode(const spec::SlurmSettings& settings, const Allocation& allocation);

// Returns whether a job with such options chooses its nodes by name itself; then there is nothing
// to wish for.
bool NamesItsNodes(const std::vector<std::string>& options);

// Finds out which nodes it has got and starts a launcher on each; a single one runs in the batch
// step, which saves srun. Ends with 1 if the job failed, for Slurm's accounting.
std::string BatchScript(const spec::SlurmSettings& settings, const Allocation& allocation,
                        const BatchJob& job);

// A batch script begins with this. sbatch hands on what it had: on the nodes the user's token for
// Slurm is too old when the job begins, where munge knows the user anyway; and their cluster is the
// one that they are in.
inline constexpr absl::string_view kForgetTheCluster = "unset SLURM_JWT SLURM_CLUSTERS\n";

// Returns the part of a batch script that finds out the nodes and their addresses, for TUTTI_GANG.
std::string GangScript(size_t nodes);

// Returns srun with a launcher's step on each of the nodes, up to the command.
std::string SrunScript(const spec::SlurmSettings& settings, const Allocation& allocation);

}  // namespace tutti::engine
