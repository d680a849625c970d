// Makes the collectives that strategies consist of, for a comm::Stream.
#pragma once

#include <torch/types.h>

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

// Returns one that gives all ranks rank 0's; `tensor` is dense, and kept alive.
inline comm::Stream::Collective BroadcastOf(torch::Tensor tensor, base::Deadline deadline) {
  return [tensor, deadline](comm::Communicator& communicator) {
    return communicator.Broadcast(tensor.mutable_data_ptr(), tensor.nbytes(), 0, deadline);
  };
}

}  // namespace tutti::parallel
