// Makes the collectives that strategies consist of, for a comm::Stream.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <span>

#include "runtime/comm/stream.h"

namespace tutti::parallel {

// Return the type of what is summed, fp32 or fp64, and the values of a dense tensor of fp32.
inline comm::DataType DataTypeOf(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat64 ? comm::DataType::kFloat64
                                                 : comm::DataType::kFloat32;
}
inline std::span<float> FloatsOf(const torch::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

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
