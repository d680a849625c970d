// Says in words how ranks that train by themselves hear of each other, and what that takes.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/parallel/layout.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

// Writes a line on the way and one on the memory of a rank, and where `step_seconds` is known, the
// time that a rank takes to compute a step, one on the bytes of an hour. Empty where ranks meet in
// every step.
std::string DescribeExchange(const Recipe& recipe, int64_t parameters,
                             const parallel::Layout& layout, double step_seconds = 0);

}  // namespace tutti::train
