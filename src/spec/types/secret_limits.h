// Limits of secrets, which the service keeps to and clients know.
#pragma once

#include <cstddef>

namespace tutti::spec {

inline constexpr size_t kLargestSecret = 64 << 10;  // bytes of one value
// Bytes of all values together that a job names, each counted once: what a process's environment
// can hold beside its other variables, and a launcher's mask of them takes at most 70 MB.
inline constexpr size_t kMostSecretsOfJob = 128 << 10;

}  // namespace tutti::spec
