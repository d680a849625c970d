// Decides what a sweep does next: whether another trial starts and with which values, which trials
// are stopped, which is the best, and how it ends. A pure function of its file, its seed and its
// trials.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/flow/sweep_trials.h"
#include "spec/types/job.h"

namespace tutti::flow {

struct SweepNow {
  const SweepTrials& trials;  // those that were started
  bool canceled = false;
  bool timed_out = false;
  int may_start = 1;  // so many more trials, if the sweep has them
  // In bayesian sampling these are the next trial's values, if they have been proposed.
  const Values* proposed = nullptr;
};

struct SweepDecision {
  bool starts = false;  // trial number trials.size() + 1, with `values`
  Values values;
  // In bayesian sampling so many trials may start once a Sampler has proposed their values. That
  // takes time, so that it is not done here.
  int to_propose = 0;
  std::vector<TrialStop> stops;
  int best = 0;  // number of the best completed trial; 0: none yet
  double best_metric = 0;
  Outcome outcome = Outcome::kNone;
  std::string line;  // how it ended, or how far it is
};

SweepDecision NextOfSweep(const spec::JobSpec& job, uint64_t seed, const SweepNow& now);

// Returns "trial-3", the step's name of trial 3; and back, 0 for what is no such name.
std::string TrialName(int number);
int TrialNumber(const std::string& name);

// Returns the best of the reports; they are not empty.
double BestOf(const spec::Sweep& sweep, const std::vector<double>& reports);

}  // namespace tutti::flow
