#include "platform/health/node_look.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "platform/health/check_program.h"
#include "platform/health/disk_check.h"
#include "platform/health/gpu_watch.h"
#include "platform/health/kernel_checks.h"

namespace tutti::health {
namespace {

using Outcome = NodeCheck::Outcome;

NodeCheck CheckFolder(const std::filesystem::path& folder) {
  const absl::Status made = base::MakeDirectories(folder);
  if (!made.ok()) return {"disk", Outcome::kIll, std::string(made.message())};
  return CheckDisk("disk", folder);
}

// A program of NVIDIA's that is not there says nothing of the devices.
NodeCheck CheckGpus(const NodeLook& look, const std::atomic<bool>& abandoned) {
  const auto now = FindGpus(look.nvidia_smi, abandoned);
  if (!now.ok()) {
    const bool is_unknown = absl::IsNotFound(now.status()) || absl::IsCancelled(now.status());
    return {"gpu", is_unknown ? Outcome::kUnknown : Outcome::kIll,
            FirstWords(now.status().message())};
  }
  const std::string log = look.kernel_log ? look.kernel_log() : ReadKernelLog();
  std::vector<std::string> faults;
  for (const GpuFault& fault : FaultsOf({}, *now, DeviceXids(log))) {
    const bool is_its = std::any_of(look.gpus.begin(), look.gpus.end(),
                                    [&](const std::string& name) { return IsNamed(fault, name); });
    if (is_its) faults.push_back(absl::StrCat("GPU ", fault.index, " ", fault.what));
  }
  if (faults.empty()) return {"gpu", Outcome::kWell, "no errors"};
  return {"gpu", Outcome::kIll, absl::StrJoin(faults, ", ")};
}

}  // namespace

std::vector<NodeCheck> LookAtNode(const NodeLook& look, const std::atomic<bool>& abandoned) {
  std::vector<NodeCheck> checks = {CheckFolder(look.folder), CheckMemory(look.root)};
  if (!look.checks.links.empty()) checks.push_back(CheckLinks(look.checks.links, look.root));
  if (!look.gpus.empty()) checks.push_back(CheckGpus(look, abandoned));
  if (!look.checks.command.empty()) checks.push_back(CheckByProgram(look.checks, abandoned));
  return checks;
}

std::string IllnessOf(const std::vector<NodeCheck>& checks) {
  std::vector<std::string> ill;
  for (const NodeCheck& check : checks) {
    if (check.ill()) ill.push_back(absl::StrCat(check.name, ": ", check.detail));
  }
  return absl::StrJoin(ill, "; ");
}

}  // namespace tutti::health
