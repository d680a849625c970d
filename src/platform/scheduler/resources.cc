#include "platform/scheduler/resources.h"

#include <algorithm>

namespace tutti::scheduler {

Resources& Resources::operator+=(const Resources& more) {
  cores += more.cores;
  memory_bytes += more.memory_bytes;
  gpus += more.gpus;
  return *this;
}

Resources& Resources::operator-=(const Resources& less) {
  cores -= less.cores;
  memory_bytes -= less.memory_bytes;
  gpus -= less.gpus;
  return *this;
}

bool Fits(const Resources& need, const Resources& free) {
  return need.cores <= free.cores && need.memory_bytes <= free.memory_bytes &&
         need.gpus <= free.gpus;
}

Resources NeedOn(const ClusterNode& node, const std::optional<Resources>& share) {
  if (!share) return node.has;
  Resources need = *share;
  // Rounded down, so that shares of all cores fit.
  if (need.memory_bytes == 0) {
    need.memory_bytes =
        node.has.memory_bytes / std::max(node.has.cores, 1) * std::min(need.cores, node.has.cores);
  }
  return need;
}

}  // namespace tutti::scheduler
