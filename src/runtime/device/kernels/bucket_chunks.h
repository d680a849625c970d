// Cuts the flat memory of a bucket into chunks, for kernels on a GPU that update neighbours alike:
// every chunk lies within one range, a layer's weights for instance.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace tutti::device {

struct Chunks {
  static constexpr int64_t kElements = 4096;  // at most

  torch::Tensor begins;  // [chunks + 1] int64: elements; the last is the end
  torch::Tensor ranges;  // [chunks] int32
  torch::Tensor firsts;  // [ranges + 1] int32: chunks
  torch::Tensor decays;  // [ranges] fp32: 1, or 0 for what weight decay spares
};

// Makes the chunks: ranges lie one behind the other from 0 on; `ends` are in elements. On `device`.
Chunks MakeChunks(const std::vector<int64_t>& ends, const std::vector<bool>& decays,
                  torch::Device device);

}  // namespace tutti::device
