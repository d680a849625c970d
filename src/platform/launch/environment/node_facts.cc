#include "platform/launch/environment/node_facts.h"

#include <sched.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/slurm_placement.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

int OwnCores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// This node's devices: what whoever started the launcher gave it (the engine, Slurm), else all.
std::vector<std::string> OwnGpus(const Variables& environment) {
  if (const auto given = environment.find("CUDA_VISIBLE_DEVICES"); given != environment.end()) {
    return absl::StrSplit(given->second, ',', absl::SkipEmpty());
  }
  std::vector<std::string> gpus;
  while (fs::exists(absl::StrCat("/dev/nvidia", gpus.size()))) {
    gpus.push_back(absl::StrCat(gpus.size()));
  }
  return gpus;
}

}  // namespace

NodeFacts FactsOfThisNode() {
  NodeFacts facts;
  std::error_code error;
  facts.program_folder = fs::read_symlink("/proc/self/exe", error).parent_path().string();
  facts.own = base::CurrentEnvironment();
  facts.gpus = OwnGpus(facts.own);
  facts.cores = AllocatedCores(facts.own, OwnCores());
  return facts;
}

}  // namespace tutti::launch
