#include "runtime/train/optimizer/stretches.h"

namespace tutti::train {

std::vector<Stretch> StretchesOf(const parallel::Bucket& bucket, Decay decay) {
  std::vector<Stretch> stretches;
  for (const auto& slot : bucket.slots()) {
    const bool decays = decay == Decay::kAll || slot.parameter.dim() > 1;
    if (stretches.empty() || stretches.back().decays != decays) {
      if (!stretches.empty()) stretches.back().end = slot.offset;
      stretches.push_back({slot.offset, 0, decays});
    }
  }
  stretches.back().end = bucket.size();
  return stretches;
}

std::vector<std::vector<Stretch>> StretchesOf(const Optimizer::Buckets& buckets, Decay decay) {
  std::vector<std::vector<Stretch>> stretches;
  for (const auto& bucket : buckets) stretches.push_back(StretchesOf(*bucket, decay));
  return stretches;
}

}  // namespace tutti::train
