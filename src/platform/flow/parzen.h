// Samples by a tree-structured Parzen estimator, which is Azure ML's bayesian sampling here
// (Bergstra, Bardenet, Bengio and Kégl 2011, "Algorithms for hyper-parameter optimization"): the
// best quarter of the trials and the rest are each turned into a density; of some draws from the
// first, that one is taken which the first makes most likely against the second. Every dimension is
// sampled by itself, on the unit interval. Plain values.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tutti::flow {

struct ParzenDimension {
  std::vector<double> good, rest;  // quantiles in [0, 1]
  int64_t choices = 0;             // how many values there are, if they have no order; else 0
};

// ParzenDensity is a sum of Gaussian kernels on the observations, cut off at the ends of the
// interval, and of a flat one of weight 1: what nobody has tried stays possible.
class ParzenDensity {
 public:
  explicit ParzenDensity(std::vector<double> centres);

  double At(double u) const;
  // Returns the quantile `v` of the kernel that `pick` in (0, 1) chooses.
  double Draw(double pick, double v) const;

 private:
  struct Kernel {
    double centre = 0, width = 1;
    double below = 0;  // what of it lies below the interval
    double mass = 1;   // what of it lies on the interval
    double peak = 1;   // its density there, at its centre
  };
  std::vector<Kernel> kernels_;
};

// Parzen is what is known of one dimension. It is made once for all trials that it proposes.
class Parzen {
 public:
  explicit Parzen(ParzenDimension seen)
      : seen_(std::move(seen)), good_(seen_.good), rest_(seen_.rest) {}

  // Returns the next quantile in (0, 1); draws are those of trial `number` in dimension
  // `dimension`. The time grows with what was seen.
  double Next(uint64_t seed, uint64_t number, uint64_t dimension) const;

 private:
  ParzenDimension seen_;
  ParzenDensity good_, rest_;
};

}  // namespace tutti::flow
