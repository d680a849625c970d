// Finds the day as of which the packages of a job are resolved that its files do not pin. Beside
// pins of 2022 the newest numba refuses the numpy that is pinned; the numba of the pins' day does
// not.
#pragma once

#include <atomic>
#include <filesystem>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spec/types/job.h"

namespace tutti::launch {

// Returns the environment with `newest_day`: the day after that on which the newest of its pins
// (==) was uploaded, if that is more than a year ago. Without one stay an environment without pins,
// one that is told not to (as_of_pins) or has packages of a built-in table, and whatever the
// indexes do not tell of all pins (PEP 700) within seconds. What they have told is kept in
// `environments` (KEY.as-of), so that they are asked once for each content. UV_EXCLUDE_NEWER, of
// who runs tutti, goes before it.
spec::Environment AsOfItsPins(spec::Environment environment,
                              const std::filesystem::path& environments,
                              const std::atomic<bool>& cancelled, absl::Time now = absl::Now());

}  // namespace tutti::launch
