// Layers computes layers in fewer passes over memory than libtorch does, for activations [N, C, H,
// W] that lie channels-last: in bf16 on a GPU where libtutti_cuda.so is (cuda.h), in bf16 and fp32
// on the CPU. Errors are c10::Error. Thread-safe.
#pragma once

#include <torch/types.h>

namespace tutti::device {

// The vectors are [channels] in fp32; `batches` (int64) counts the calls.
struct BatchNormTensors {
  torch::Tensor weight, bias, running_mean, running_var, batches;
  double momentum = 0.1, epsilon = 1e-5;
};

struct Normalised {
  torch::Tensor y;
  torch::Tensor mean, inverse_deviation;  // of the batch
  // What backward needs to know where y > 0, with residual and ReLU alone; else undefined. A GPU
  // has a bit an element, the CPU y itself.
  torch::Tensor positive;
};

struct NormalisedGradients {
  torch::Tensor x, weight, bias;
  torch::Tensor residual;  // undefined where there was none
};

// The sum of two normalisations, of x and of x2: y, with what backward needs of each.
struct NormalisedPair {
  Normalised first;                         // y and positive are the sum's
  torch::Tensor mean2, inverse_deviation2;  // of the second
};

struct NormalisedPairGradients {
  torch::Tensor x, weight, bias;
  torch::Tensor x2, weight2, bias2;
};

class Layers {
 public:
  virtual ~Layers() = default;

  // Tells whether the functions below take `x`.
  virtual bool Takes(const torch::Tensor& x) const = 0;

  // Normalises in train mode: see cuda/batch_norm_cuda.h and cpu/batch_norm/batch_norm_cpu.h.
  // `residual` may be undefined.
  virtual Normalised BatchNormForward(const torch::Tensor& x, const torch::Tensor& residual,
                                      bool relu, const BatchNormTensors& norm) = 0;
  // The gradient of y is dy + dy2; dy2 may be undefined.
  virtual NormalisedGradients BatchNormBackward(const torch::Tensor& x, bool had_residual,
                                                bool relu, const BatchNormTensors& norm,
                                                const Normalised& forward, const torch::Tensor& dy,
                                                const torch::Tensor& dy2) = 0;

  // Tells whether this is done: relu of the sum of two normalisations of one shape, in train mode,
  // of which neither is written by itself (cuda/batch_norm_pair.h).
  virtual bool TakesPairs() const { return false; }
  virtual NormalisedPair BatchNormPairForward(const torch::Tensor& /*x*/,
                                              const BatchNormTensors& /*norm*/,
                                              const torch::Tensor& /*x2*/,
                                              const BatchNormTensors& /*norm2*/) {
    TORCH_CHECK(false, "TakesPairs");
  }
  // The gradient of y is dy + dy2; dy2 may be undefined.
  virtual NormalisedPairGradients BatchNormPairBackward(
      const torch::Tensor& /*x*/, const BatchNormTensors& /*norm*/, const torch::Tensor& /*x2*/,
      const BatchNormTensors& /*norm2*/, const NormalisedPair& /*forward*/,
      const torch::Tensor& /*dy*/, const torch::Tensor& /*dy2*/) {
    TORCH_CHECK(false, "TakesPairs");
  }

  // The window is 3x3, with stride 2 and a padding of 1; `taken` says which of the nine it took.
  struct Pooled {
    torch::Tensor y, taken;
  };
  virtual bool Pools(const torch::Tensor& x) const { return Takes(x); }
  virtual Pooled MaxPoolForward(const torch::Tensor& x) = 0;
  virtual torch::Tensor MaxPoolBackward(const torch::Tensor& dy, const torch::Tensor& taken,
                                        torch::IntArrayRef input_size) = 0;

  // Rearranges images [N, 3, H, W] into blocks of 2 x 2 pixels, [N, 16, height, width]: see
  // cuda/space_to_depth.h. The result is undefined where that is of no use for such images.
  virtual torch::Tensor SpaceToDepth(const torch::Tensor& /*images*/, int64_t /*before*/,
                                     int64_t /*height*/, int64_t /*width*/) {
    return {};
  }
};

}  // namespace tutti::device
