// Resources are what of a node can be given to jobs, one share to each. Plain values; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tutti::scheduler {

struct Resources {
  int cores = 0;
  int64_t memory_bytes = 0;
  int gpus = 0;

  friend auto operator<=>(const Resources&, const Resources&) = default;  // NOLINT
  Resources& operator+=(const Resources& more);
  Resources& operator-=(const Resources& less);
};

// Returns whether `free` has room for all of `need`.
bool Fits(const Resources& need, const Resources& free);

struct ClusterNode {
  std::string name;
  Resources has = {.cores = 1};
};

// Returns what a job that asks for `share` of each of its nodes takes of this one; without a share
// it is all. A share that does not say how much memory gets that of its cores.
Resources NeedOn(const ClusterNode& node, const std::optional<Resources>& share);

}  // namespace tutti::scheduler
