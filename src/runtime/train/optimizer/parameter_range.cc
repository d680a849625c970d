#include "runtime/train/optimizer/parameter_range.h"

namespace tutti::train {

std::vector<ParameterRange> ParameterRangesOf(const parallel::Bucket& bucket, Decay decay) {
  std::vector<ParameterRange> ranges;
  for (const auto& slot : bucket.slots()) {
    const bool decays = decay == Decay::kAll || slot.parameter.dim() > 1;
    if (ranges.empty() || ranges.back().decays != decays) {
      if (!ranges.empty()) ranges.back().end = slot.offset;
      ranges.push_back({slot.offset, 0, decays});
    }
  }
  ranges.back().end = bucket.size();
  return ranges;
}

std::vector<std::vector<ParameterRange>> ParameterRangesOf(const Optimizer::Buckets& buckets,
                                                           Decay decay) {
  std::vector<std::vector<ParameterRange>> ranges;
  for (const auto& bucket : buckets) ranges.push_back(ParameterRangesOf(*bucket, decay));
  return ranges;
}

}  // namespace tutti::train
