#include "runtime/train/optimizer/optimizer.h"

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

}  // namespace tutti::train
