// What a job asks of each of its nodes, where it does not take them whole
// (resources.properties.tutti). Plain values.
#pragma once

#include <cstdint>

namespace tutti::spec {

struct PartOfNode {
  int cpus = 0;              // processors; 0: one for each of its processes on a node
  int64_t memory_bytes = 0;  // 0: that of its processors, as the node has it
  int gpus = 0;

  bool operator==(const PartOfNode&) const = default;
};

}  // namespace tutti::spec
