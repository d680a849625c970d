// What there is on this machine to share out among virtual nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::engine {

// The processors that this process may run on, in order.
std::vector<int> UsableCores();
// Physical memory, or this process's cgroup limit if that is less. Bytes.
int64_t UsableMemory();
// Device numbers of NVIDIA GPUs, or what CUDA_VISIBLE_DEVICES leaves of them.
std::vector<std::string> UsableGpus();

}  // namespace tutti::engine
