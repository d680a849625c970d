// Compares planes with planes, for tests and fuzz targets.
#pragma once

#include "runtime/data/image.h"

namespace tutti::data {

// Returns whether `a` and `b`, which may hold different parts of an image that was scaled by
// 1/denominator, have the same samples for the pixels of `region`, those beside it that enlarging
// colour looks at among them.
bool SameSamples(const Planes& a, const Planes& b, const Region& region, int denominator);

}  // namespace tutti::data
