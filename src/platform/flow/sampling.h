// Chooses the values of a sweep's next trial: a pure function of the sweep, the seed, the trial's
// number and, for bayesian sampling, of what the trials before it have reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/types/sweep.h"

namespace tutti::flow {

// One value for each parameter of the sweep, in its order.
using Values = std::vector<std::string>;

// A trial whose result is known.
struct Observation {
  Values values;
  double metric = 0;
};

// Proposes the values of trial `number`, from 1. Nothing once a grid has no more. `seen` counts for
// bayesian sampling only.
std::optional<Values> Propose(const spec::Sweep& sweep, uint64_t seed, int number,
                              const std::vector<Observation>& seen);

// Returns how many trials there will be: the limit, or all points of a grid that has fewer.
int TrialCount(const spec::Sweep& sweep);

}  // namespace tutti::flow
