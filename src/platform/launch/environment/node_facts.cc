#include "platform/launch/environment/node_facts.h"

#include <sched.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "base/machine/usable_gpus.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/slurm_placement.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// By which podman finds NVIDIA's GPUs.
bool HasCdiFile() {
  for (const char* folder : {"/etc/cdi", "/var/run/cdi"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (absl::StrContains(entry.path().filename().string(), "nvidia")) return true;
    }
  }
  return false;
}

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
  facts.has_cdi = HasCdiFile();
  const auto any = [](const fs::path& /*file*/) { return true; };
  if (!base::GpuDevices("/dev", any).empty()) facts.gpu_devices = base::GpuDevices();
  facts.cores = AllocatedCores(facts.own, OwnCores());
  return facts;
}

}  // namespace tutti::launch
