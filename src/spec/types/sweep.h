// Sweep holds what Azure ML's sweep job says: the search space, the sampling, the objective, the
// early termination policy and the limits. Plain values; what they mean is in platform/flow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tutti::spec {

enum class SearchKind {
  kChoice,       // one of `values`
  kRandInt,      // a whole number from 0 to upper - 1
  kUniform,      // from low to high
  kQUniform,     // that, rounded to multiples of q
  kLogUniform,   // exp(uniform(low, high))
  kQLogUniform,  // that, rounded to multiples of q
  kNormal,       // mean mu, standard deviation sigma
  kQNormal,      // that, rounded to multiples of q
  kLogNormal,    // exp(normal(mu, sigma))
  kQLogNormal,   // that, rounded to multiples of q
};

struct SearchParameter {
  std::string name;
  SearchKind kind = SearchKind::kChoice;
  std::vector<std::string> values;  // as they are put into the command
  int64_t upper = 1;
  double low = 0, high = 1;
  double mu = 0, sigma = 1;
  double q = 1;
};

enum class Sampling { kRandom, kSobol, kGrid, kBayesian };

struct EarlyTermination {
  enum class Kind { kNone, kBandit, kMedianStopping, kTruncationSelection };

  Kind kind = Kind::kNone;
  int evaluation_interval = 1;  // in reports of the metric
  int delay_evaluation = 0;     // reports before the first evaluation
  double slack_factor = 0;      // bandit: one of the two is not 0
  double slack_amount = 0;
  int truncation_percentage = 0;
};

struct Sweep {
  std::vector<SearchParameter> parameters;  // in the order of the file; never empty
  Sampling sampling = Sampling::kRandom;
  std::optional<int64_t> seed;          // without it the job's id is the seed
  double log_base = 2.718281828459045;  // of the log… distributions
  bool maximize = false;
  std::string metric;  // objective.primary_metric
  EarlyTermination early_termination;
  int max_trials = 1000;
  int max_concurrent = 1000;
  absl::Duration trial_timeout = absl::InfiniteDuration();
};

}  // namespace tutti::spec
