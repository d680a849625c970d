// Layers in fewer passes over memory than libtorch's, for activations [N, C, H, W] that lie
// channels-last: in bf16 on a GPU where libtutti_cuda.so is (cuda.h), in bf16 and fp32 on the CPU.
// Errors are c10::Error. Thread-safe.
#pragma once

#include <torch/types.h>

namespace tutti::device {

// Vectors of [channels] in fp32; `batches` counts the calls, int64.
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

  // Whether the functions below take it.
  virtual bool Takes(const torch::Tensor& x) const = 0;

  // In train mode. See cuda/batch_norm.h and cpu/batch_norm/batch_norm.h. `residual` may be
  // undefined.
  virtual Normalised BatchNormForward(const torch::Tensor& x, const torch::Tensor& residual,
                                      bool relu, const BatchNormTensors& norm) = 0;
  // The gradient of y is dy + dy2; dy2 may be undefined.
  virtual NormalisedGradients BatchNormBackward(const torch::Tensor& x, bool had_residual,
                                                bool relu, const BatchNormTensors& norm,
                                                const Normalised& forward, const torch::Tensor& dy,
                                                const torch::Tensor& dy2) = 0;

  // relu of the sum of the two, of one shape, in train mode, where neither is written; see
  // cuda/batch_norm_pair.h. Only where that is done.
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

  // 3x3 with stride 2 and a padding of 1; `taken` says which of the nine.
  struct Pooled {
    torch::Tensor y, taken;
  };
  virtual bool Pools(const torch::Tensor& x) const { return Takes(x); }
  virtual Pooled MaxPoolForward(const torch::Tensor& x) = 0;
  virtual torch::Tensor MaxPoolBackward(const torch::Tensor& dy, const torch::Tensor& taken,
                                        torch::IntArrayRef input_size) = 0;

  // Images [N, 3, H, W] as blocks of 2 x 2 pixels, [N, 16, height, width]: see
  // cuda/space_to_depth.h. Undefined where that is of no use, for images like these.
  virtual torch::Tensor SpaceToDepth(const torch::Tensor& /*pictures*/, int64_t /*before*/,
                                     int64_t /*height*/, int64_t /*width*/) {
    return {};
  }
};

// Null where there are none: on a GPU without libtutti_cuda.so.
Layers* LayersOn(torch::Device device);

}  // namespace tutti::device
