#include "platform/launch/environment/node_facts.h"

#include <sched.h>

#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/gpus/usable_gpus.h"
#include "base/process/child_process.h"
#include "platform/launch/environment/slurm_placement.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfCdi = 4 << 20;

// Returns the text of the files by which podman finds NVIDIA's GPUs; nothing if there is none.
std::optional<std::string> CdiText() {
  std::optional<std::string> text;
  for (const char* folder : {"/etc/cdi", "/var/run/cdi"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (!absl::StrContains(entry.path().filename().string(), "nvidia")) continue;
      text = absl::StrCat(text.value_or(""), base::ReadFile(entry.path(), kMostOfCdi).value_or(""),
                          "\n");
    }
  }
  return text;
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
  const std::optional<std::string> cdi = CdiText();
  facts.has_cdi = cdi.has_value();
  const auto any = [](const fs::path& /*file*/) { return true; };
  if (cdi && !base::GpuDevices("/dev", any).empty()) {
    facts.gpu_names = base::CdiNames(base::GpuDevices(), base::GpusByBus(), *cdi);
  }
  facts.cores = AllocatedCores(facts.own, OwnCores());
  return facts;
}

}  // namespace tutti::launch
