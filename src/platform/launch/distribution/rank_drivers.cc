// The list of rank drivers. It stands alone, so that a program with a list of its own links that.
#include "platform/launch/environment/rank_driver.h"

namespace tutti::launch {

extern const RankDriver kTensorFlowRanks, kRayRanks;

std::span<const RankDriver* const> RankDrivers() {
  static constexpr const RankDriver* kAll[] = {&kTensorFlowRanks, &kRayRanks};
  return kAll;
}

}  // namespace tutti::launch
