// GpuKernels gives the kernels for GPUs (device/kernels/cuda.h) what they need of an optimizer's
// buckets. Internal to this room. Thread-compatible.
#pragma once

#include <vector>

#include "runtime/device/kernels/cuda.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/train/optimizer/parameter_range.h"

namespace tutti::train {

class GpuKernels {
 public:
  // `ranges` of each bucket; `buckets` must outlive it.
  GpuKernels(const parallel::Buckets& buckets,
             const std::vector<std::vector<ParameterRange>>& ranges);

  // Returns the kernels, null where there are none for these buckets: on the CPU, and without
  // libtutti_cuda.so.
  device::Cuda* kernels() const { return kernels_; }
  // Returns what the kernels take of bucket i; call it only where there are kernels.
  device::UpdateTensors TensorsOf(size_t i, double learning_rate, double weight_decay) const;

 private:
  const parallel::Buckets& buckets_;
  device::Cuda* kernels_ = nullptr;
  std::vector<device::Chunks> chunks_;  // one per bucket
};

}  // namespace tutti::train
