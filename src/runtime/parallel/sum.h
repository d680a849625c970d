// SumOf makes the sum over the ranks, of which every strategy is made, for a comm::Stream.
#pragma once

#include <cstddef>

#include "runtime/comm/stream.h"

namespace tutti::parallel {

// Returns a collective that sums in place, over all ranks.
inline comm::Stream::Collective SumOf(void* data, size_t count, comm::DataType type,
                                      base::Deadline deadline) {
  return [=](comm::Communicator& communicator) {
    return communicator.AllReduce(data, count, type, comm::ReduceOp::kSum, deadline);
  };
}

}  // namespace tutti::parallel
