// Batch-norm, addition, ReLU and max-pooling in fewer passes over memory than libtorch's, where
// there are kernels for it (device/layers.h): in train mode, of bf16 that lies channels-last.
// Internal to this room.
#pragma once

#include <torch/types.h>

#include "runtime/device/layers.h"
#include "runtime/models/batch_norm.h"

namespace tutti::models {

// Whether the functions below take such an activation.
bool CanFuse(const torch::Tensor& x);

// relu(norm(x) + residual); `residual` may be undefined, `relu` false.
Fork FusedBatchNorm(const torch::Tensor& x, const torch::Tensor& residual, bool relu,
                    const device::BatchNormTensors& norm);

// 3x3 with stride 2 and a padding of 1; of any activation.
torch::Tensor FusedMaxPool(const torch::Tensor& x);
// The same by libtorch, with any padding. In a trace it can go to ONNX.
torch::Tensor PlainMaxPool(const torch::Tensor& x, int64_t padding);

}  // namespace tutti::models
