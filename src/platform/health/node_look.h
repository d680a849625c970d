// Looks at a node from within, for a launcher on a node that no service of tutti's looks at: its
// scratch folder, memory, links, GPUs, and the site's own program. Nothing is known of what
// was there before. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "platform/health/node_check.h"
#include "spec/types/node_checks.h"

namespace tutti::health {

struct NodeLook {
  std::filesystem::path folder;      // on the disk that the job is to use; made if need be
  spec::NodeChecks checks;           // of the site
  std::vector<std::string> gpus;     // the job's, as CUDA_VISIBLE_DEVICES names them
  std::filesystem::path root = "/";  // of /proc and /sys; another in tests
  std::string nvidia_smi = "nvidia-smi";
  std::function<std::string()> kernel_log;  // empty: this machine's, as far as it may be read
};

// Takes as long as disks and programs do; once `abandoned` is set programs end, and what has not
// been looked at yet is left out.
std::vector<NodeCheck> LookAtNode(const NodeLook& look, const std::atomic<bool>& abandoned);

// Returns "gpu: GPU 1 is gone; disk: …" of those that are ill; "" if none is.
std::string IllnessOf(const std::vector<NodeCheck>& checks);

}  // namespace tutti::health
