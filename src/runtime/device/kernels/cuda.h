// Declares what libtutti_cuda.so adds to libtorch. It is a library of its own, built only where
// nvcc is; this interface is all that the programs know of it, and needs no CUDA header.
//
// Work goes to the current stream, like libtorch's. Errors are c10::Error.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/device/kernels/bucket_chunks.h"
#include "runtime/device/kernels/layers.h"

namespace tutti::device {

// A recorded run of kernels that is started as one: what libtorch spends on the CPU for each of
// them is spent once. It reads and writes the same memory every time.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void Replay() = 0;
};

// Every update has these: flat memory on the GPU, [size] of fp32, in chunks.
struct UpdateTensors {
  torch::Tensor values, gradients;
  torch::Tensor copy;  // bf16, gets the values; may be undefined
  torch::Tensor
      found_nonfinite;  // one fp32 value: nothing is done unless it is 0. May be undefined
  const Chunks& chunks;
  double learning_rate = 0, weight_decay = 0;
};

struct SgdTensors : UpdateTensors {
  torch::Tensor velocities;
  double momentum = 0;
  bool nesterov = false;
};

struct LarsTensors : UpdateTensors {
  torch::Tensor velocities;
  double momentum = 0, trust = 0;
};

struct AdamTensors : UpdateTensors {
  torch::Tensor first, second;  // moments
  double beta1 = 0, beta2 = 0, epsilon = 0;
  int64_t t = 1;  // number of the update
};

class Cuda : public Layers {
 public:
  // Runs `work`, which may only put kernels on the current stream, without doing any of it.
  virtual std::unique_ptr<Graph> Record(const std::function<void()>& work) = 0;

  // Copies each of `from` (bf16 or fp32) into the fp32 tensor at its place in `to`, which lies the
  // same way in memory. `not_finite`, one fp32 value on the GPU, becomes 1 if anything is not
  // finite.
  virtual void Gather(const std::vector<torch::Tensor>& from, const std::vector<torch::Tensor>& to,
                      const torch::Tensor& not_finite) = 0;

  // These do the optimizers of train/optimizer in as few passes over memory as there can be.
  virtual void Sgd(const SgdTensors& tensors) = 0;
  virtual void Lars(const LarsTensors& tensors) = 0;
  virtual void AdamW(const AdamTensors& tensors) = 0;
  virtual void Lamb(const AdamTensors& tensors) = 0;
};

}  // namespace tutti::device

// Returns what device.cc looks up in the library.
extern "C" tutti::device::Cuda* tutti_cuda();
