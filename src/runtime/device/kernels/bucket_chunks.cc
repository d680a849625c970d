#include "runtime/device/kernels/bucket_chunks.h"

#include <algorithm>

namespace tutti::device {

Chunks MakeChunks(const std::vector<int64_t>& ends, const std::vector<bool>& decays,
                  torch::Device device) {
  std::vector<int64_t> begins = {0}, ranges, firsts = {0};
  for (size_t i = 0; i < ends.size(); ++i) {
    while (begins.back() < ends[i]) {
      begins.push_back(std::min(begins.back() + Chunks::kElements, ends[i]));
      ranges.push_back(static_cast<int64_t>(i));
    }
    firsts.push_back(static_cast<int64_t>(ranges.size()));
  }
  std::vector<float> factors;
  for (const bool decay : decays) factors.push_back(decay ? 1 : 0);
  const auto there = [&](const std::vector<int64_t>& numbers, torch::ScalarType type) {
    return torch::tensor(numbers, torch::kInt64).to(device, type);
  };
  return {there(begins, torch::kInt64), there(ranges, torch::kInt32), there(firsts, torch::kInt32),
          torch::tensor(factors).to(device)};
}

}  // namespace tutti::device
