#include "platform/launch/environment/node_facts.h"

#include <sched.h>

#include <filesystem>

#include "base/machine/usable_gpus.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/slurm_placement.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

int OwnCores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

NodeFacts FactsOfThisNode() {
  NodeFacts facts;
  std::error_code error;
  facts.program_folder = fs::read_symlink("/proc/self/exe", error).parent_path().string();
  facts.own = base::CurrentEnvironment();
  facts.gpus = base::UsableGpus(facts.own);
  facts.cores = AllocatedCores(facts.own, OwnCores());
  return facts;
}

}  // namespace tutti::launch
