#include "runtime/train/optimizer/gpu_kernels.h"

#include "runtime/device/device.h"

namespace tutti::train {

GpuKernels::GpuKernels(const parallel::Buckets& buckets,
                       const std::vector<std::vector<ParameterRange>>& ranges)
    : buckets_(buckets) {
  if (buckets.empty() || !buckets[0]->values().is_cuda()) return;
  kernels_ = device::Kernels();
  for (size_t i = 0; i < buckets.size(); ++i) {
    std::vector<int64_t> ends;
    std::vector<bool> decays;
    for (const ParameterRange& range : ranges[i]) {
      ends.push_back(range.end);
      decays.push_back(range.decays);
    }
    chunks_.push_back(device::MakeChunks(ends, decays, buckets[i]->values().device()));
  }
}

device::UpdateTensors GpuKernels::TensorsOf(size_t i, double learning_rate,
                                            double weight_decay) const {
  parallel::Bucket& bucket = *buckets_[i];
  return {.values = bucket.values(),
          .gradients = bucket.gradients(),
          .copy = bucket.copy,
          .found_nonfinite = bucket.found_nonfinite,
          .chunks = chunks_[i],
          .learning_rate = learning_rate,
          .weight_decay = weight_decay};
}

}  // namespace tutti::train
