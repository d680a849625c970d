#include "platform/launch/environment/rank_driver.h"

namespace tutti::launch {

const RankDriver& RankDriverOf(const spec::LaunchPlan& plan) {
  static constexpr RankDriver kPlain = {};
  for (const RankDriver* const driver : RankDrivers()) {
    if (driver->type == plan.distribution.type) return *driver;
  }
  return kPlain;
}

}  // namespace tutti::launch
