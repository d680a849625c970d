// Compares the ranks: where each one's time goes, who holds the others up, and with what. Pure
// functions.
//
// Ranks that meet in every step all take the same time for it; the slow one is the one that does
// not wait. So ranks are compared by what they do themselves (StepParts::Own), and the cause is the
// part of that which is furthest above the median of the ranks.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "runtime/train/report/meter.h"

namespace tutti::train {

struct Straggler {
  int rank = 0;
  double own = 0, median_own = 0;  // seconds per step
  StepPart part;                   // the cause
  double seconds = 0, median = 0;  // in that part
};

// Finds the one by `ranks[r]`, seconds per step of rank r. None where no rank is a twentieth of a
// step above the median, which of an even number of ranks is the lower one of the two in the
// middle.
std::optional<Straggler> SlowestRank(std::span<const StepParts> ranks);

// Writes "rank 3 is the slowest: 41.2 ms of its own per step, the median rank 30.1 ms; backward
// takes 38.0 ms there, in the median 27.0 ms"
std::string Describe(const Straggler& straggler);

// Writes the milliseconds per step, a line a rank: the first eight, and the slowest if it is not
// one of them.
std::string DescribeRanks(std::span<const StepParts> ranks);

// Returns the fields of a metrics line: "ranks", an object a rank, and "slowest", an object or
// null.
nlohmann::json RanksJson(std::span<const StepParts> ranks);

}  // namespace tutti::train
