// Computes batch-norm, addition, ReLU and max-pooling in fewer passes over memory than libtorch
// does, and the first convolution, where there are kernels for it (device/kernels/layers.h): of
// activations that lie channels-last, in bf16 and on the CPU in fp32; batch-norm in train mode.
// Internal to this room.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/types.h>

#include "runtime/device/kernels/layers.h"
#include "runtime/models/layers/batch_norm.h"

namespace tutti::models {

// Returns whether the functions below take such an activation.
bool CanFuse(const torch::Tensor& x);

// Returns relu(norm(x) + residual); `residual` may be undefined, `relu` false.
Fork FusedBatchNorm(const torch::Tensor& x, const torch::Tensor& residual, bool relu,
                    const device::BatchNormTensors& norm);

// Tell whether relu(norm(x) + norm2(x2)) can be had without either in memory, and compute it.
bool CanFusePair(const torch::Tensor& x, const torch::Tensor& x2);
Fork FusedBatchNormPair(const torch::Tensor& x, const device::BatchNormTensors& norm,
                        const torch::Tensor& x2, const device::BatchNormTensors& norm2);

// Pools 3x3 with stride 2 and a padding of 1; of any activation.
torch::Tensor FusedMaxPool(const torch::Tensor& x);
// Does the same by libtorch, with any padding. In a trace it can go to ONNX.
torch::Tensor PlainMaxPool(const torch::Tensor& x, int64_t padding);

// Returns layer(x). Images are read by a stride of 2 as blocks of 2 x 2 pixels where that is
// faster, with the weights laid out alike: the sums are of the same products.
torch::Tensor Convolved(torch::nn::Conv2d& layer, const torch::Tensor& x);

}  // namespace tutti::models
