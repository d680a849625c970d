// Runs all checks of this machine's nodes: disk_check.h of each node's folder and of the service's,
// kernel_checks.h, gpu_watch.h, and the site's own program (`health_check` of site.yml). What is of
// the machine is looked at once for all of its nodes.
//
//   HOME/gpus     the GPUs that were seen, a line each: those that are to be there
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "platform/service/health/node_checker.h"

namespace tutti::service {

struct MachineCheckerOptions {
  std::filesystem::path home;               // the service's
  std::filesystem::path root = "/";         // of /proc, /sys and /dev
  std::string nvidia_smi = "nvidia-smi";    // looked up in PATH
  std::function<std::string()> kernel_log;  // empty: this machine's, as far as it may be read
};

std::unique_ptr<NodeChecker> MakeMachineChecker(const MachineCheckerOptions& options);

}  // namespace tutti::service
