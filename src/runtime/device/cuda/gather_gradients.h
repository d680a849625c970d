// Copies many small tensors into one flat fp32 memory, in one launch: gradients into their bucket.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti::device {

struct Piece {
  const void* from;  // dense
  float* to;
  int count;  // elements
  bool bf16;  // of `from`; else fp32
};

// *not_finite becomes 1 if there is an infinity or a NaN among them, and stays as it is otherwise.
// `pieces` is read before the call returns.
cudaError_t Gather(const Piece* pieces, int count, float* not_finite, cudaStream_t stream);

}  // namespace tutti::device
