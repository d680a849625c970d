#include "platform/health/node_look.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/health/check_program.h"
#include "platform/health/disk_check.h"
#include "platform/health/gpu_watch.h"
#include "platform/health/kernel_checks.h"

namespace tutti::health {
namespace {

using Outcome = NodeCheck::Outcome;

NodeCheck CheckFolder(const std::filesystem::path& folder) {
  const absl::Status made = base::MakeDirectories(folder);
  if (!made.ok()) {
    return {"disk", Outcome::kIll, std::string(made.message()),
            base::SpeaksOfAFullDisk(made.message())};
  }
  return CheckDisk("disk", folder);
}

NodeCheck CheckGpusOf(const NodeLook& look, const std::atomic<bool>& abandoned) {
  const auto now = FindGpus(look.nvidia_smi, abandoned);
  if (!now.ok()) return CheckOfUnseenGpus(now.status());
  const std::string log = look.kernel_log ? look.kernel_log() : ReadKernelLog();
  const absl::Duration after = base::SteadyNow() - kXidCounts;
  return CheckGpus(FaultsOf({}, *now, DeviceXids(log, after)), look.gpus);
}

}  // namespace

std::vector<NodeCheck> LookAtNode(const NodeLook& look, const std::atomic<bool>& abandoned) {
  std::vector<NodeCheck> checks = {CheckFolder(look.folder)};
  if (abandoned) return checks;
  checks.push_back(CheckMemory(look.root));
  if (!look.checks.links.empty()) checks.push_back(CheckLinks(look.checks.links, look.root));
  if (!look.gpus.empty()) checks.push_back(CheckGpusOf(look, abandoned));
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
