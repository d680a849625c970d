// Draws a benchmark's points as a chart: images per second over ranks, a panel a model, a line a
// transport, the ideal line dashed, the efficiency beside each point. A pure function.
#pragma once

#include <span>
#include <string>

#include "runtime/bench/point.h"

namespace tutti::bench {

// Returns SVG. Both axes are logarithmic, so that ideal scaling is a straight line at any number of
// ranks.
std::string SvgChart(const Conditions& conditions, std::span<const Point> points);

}  // namespace tutti::bench
