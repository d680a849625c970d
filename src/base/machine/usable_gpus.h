// Lists the GPUs that a process may use. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tutti::base {

// Returns what CUDA_VISIBLE_DEVICES of `variables` names, as it does; without it the numbers of all
// NVIDIA devices of this machine.
std::vector<std::string> UsableGpus(const std::map<std::string, std::string>& variables);

}  // namespace tutti::base
