// Says how often a launcher gives a sign of life: one of a gang on a cluster sends at least one in
// that time, also while it has nothing to deliver (docs/decisions/066-signs-of-life.md). Others are
// seen to live by other means, or nobody waits for them.
#pragma once

#include "absl/time/time.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns the longest time between two signs of life: a minute, or TUTTI_BEAT, in seconds. Zero:
// none are promised.
absl::Duration BeatOf(const spec::LaunchPlan& plan);

}  // namespace tutti::launch
