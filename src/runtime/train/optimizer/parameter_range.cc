#include "runtime/train/optimizer/parameter_range.h"

#include "runtime/models/state.h"

namespace tutti::train {

bool IsWeight(const parallel::Bucket::Slot& slot) {
  return slot.parameter.dim() > 1 && !models::IsTokenOrPosition(slot.name);
}

std::vector<ParameterRange> ParameterRangesOf(const parallel::Bucket& bucket, Decay decay) {
  std::vector<ParameterRange> ranges;
  for (const auto& slot : bucket.slots()) {
    const bool decays = decay == Decay::kAll || IsWeight(slot);
    if (ranges.empty() || ranges.back().decays != decays) {
      if (!ranges.empty()) ranges.back().end = slot.offset;
      ranges.push_back({slot.offset, 0, decays});
    }
  }
  ranges.back().end = bucket.size();
  return ranges;
}

std::vector<std::vector<ParameterRange>> ParameterRangesOf(const parallel::Buckets& buckets,
                                                           Decay decay) {
  std::vector<std::vector<ParameterRange>> ranges;
  for (const auto& bucket : buckets) ranges.push_back(ParameterRangesOf(*bucket, decay));
  return ranges;
}

}  // namespace tutti::train
