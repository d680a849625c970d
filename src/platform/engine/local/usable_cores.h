// Says which processors and how much memory of this machine can be shared out among virtual nodes.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti::engine {

// Returns the processors that this process may run on, in order.
std::vector<int> UsableCores();
// Returns the bytes of physical memory, or of this process's cgroup limit if that is less.
int64_t UsableMemory();

}  // namespace tutti::engine
