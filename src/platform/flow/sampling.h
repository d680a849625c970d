// Chooses the values of a sweep's next trial: a pure function of the sweep, the seed, the trial's
// number and, for bayesian sampling, of what the trials before it have reported.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/flow/parzen.h"
#include "spec/types/sweep.h"

namespace tutti::flow {

// One value for each parameter of the sweep, in its order.
using Values = std::vector<std::string>;

// A trial whose result is known.
struct Observation {
  std::shared_ptr<const Values> values;  // shared, so that thousands are copied in no time
  double metric = 0;
};

// Proposes trials by what is known of others, which counts for bayesian sampling only: that takes
// longer the more it is. Made once for all trials that are proposed by the same.
class Sampler {
 public:
  // `sweep` outlives it.
  Sampler(const spec::Sweep& sweep, uint64_t seed, const std::vector<Observation>& seen);

  // Returns the values of trial `number`, from 1. Nothing once a grid has no more.
  std::optional<Values> Propose(int number) const;

 private:
  double QuantileFor(int number, size_t dimension) const;

  const spec::Sweep& sweep_;
  const uint64_t seed_;
  std::vector<Parzen> learned_;  // of each parameter; empty: nothing is learned (yet)
};

// Does the same for one trial.
inline std::optional<Values> Propose(const spec::Sweep& sweep, uint64_t seed, int number,
                                     const std::vector<Observation>& seen) {
  return Sampler(sweep, seed, seen).Propose(number);
}

// Returns how many trials there will be: the limit, or all points of a grid that has fewer.
int TrialCount(const spec::Sweep& sweep);

}  // namespace tutti::flow
