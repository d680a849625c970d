// Says which processors and how much memory of this machine can be shared out among virtual nodes.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti::engine {

// The processors that this process may run on, in order.
std::vector<int> UsableCores();
// Physical memory, or this process's cgroup limit if that is less. Bytes.
int64_t UsableMemory();

}  // namespace tutti::engine
