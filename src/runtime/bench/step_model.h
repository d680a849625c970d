// Predicts how long a step with n ranks takes, from what one rank takes alone and what the link
// does (docs/decisions/027-diagnosis-and-bench.md):
//
//   step(n) = compute(1) x slowdown + exposed
//
//   backward  | bucket 0 ready | bucket 1 ready | ... | last one ready |
//   link              ==========       ==========               ==========
//                                                                exposed -> ^^^^^
//
// Pure functions. Times are seconds.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/train/report/meter.h"

namespace tutti::bench {

// An all-reduce of b bytes over the group takes alpha + b beta.
struct Link {
  double alpha = 0;
  double beta = 0;
};

struct AllReduceTime {
  double bytes = 0, seconds = 0;
};

// Returns the line that is nearest to the measurements, each weighed by its own size, so that small
// and large ones count alike; neither number is negative. {0, 0} for fewer than two.
Link FitLink(std::span<const AllReduceTime> measured);

// A step's work.
struct Work {
  train::StepParts alone;            // of one rank that has no others
  std::vector<double> bucket_bytes;  // in the order in which backward completes them
};

struct Prediction {
  double compute = 0;        // with `slowdown`
  double communication = 0;  // of all buckets, were nothing hidden
  double exposed = 0;        // what backward does not hide
  double step() const { return compute + exposed; }
};

// Predicts a step; `slowdown`: by how much a rank computes more slowly for sharing its node's cores
// with others, at least 1. Gradients come evenly over backward, by bytes; buckets are reduced one
// after the other.
Prediction PredictStep(const Work& work, const Link& link, double slowdown);
// Predicts the same of a group whose all-reduce of so many bytes takes so many seconds.
Prediction PredictStepOver(const std::function<double(double bytes)>& all_reduce, const Work& work,
                           double slowdown);

// Returns how many times as long computing takes on a node with `cores` cores if it has `ranks`
// ranks of `threads` threads each; at least 1.
double Slowdown(int ranks, int threads, int cores);

}  // namespace tutti::bench
