// Samples by a tree-structured Parzen estimator, which is Azure ML's bayesian sampling here
// (Bergstra, Bardenet, Bengio and Kégl 2011, "Algorithms for hyper-parameter optimization"): the
// best quarter of the trials and the rest are each turned into a density; of some draws from the
// first, that one is taken which the first makes most likely against the second. Every dimension by
// itself, on the unit interval. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti::flow {

struct ParzenDimension {
  std::vector<double> good, rest;  // quantiles in [0, 1]
  int64_t choices = 0;             // how many values there are, if they have no order; else 0
};

// Returns the next quantile in (0, 1); draws are those of trial `number` in dimension `dimension`.
double ParzenNext(const ParzenDimension& seen, uint64_t seed, uint64_t number, uint64_t dimension);

}  // namespace tutti::flow
