// Computes the learning rate as a pure function of the step. No state, so that a resumed run has
// the same.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::train {

struct Schedule {
  enum class Kind { kCosine, kStep, kConstant };
  // The kinds by the names that recipes give them. Help and errors take them from here.
  static constexpr std::pair<absl::string_view, Kind> kNames[] = {
      {"cosine", Kind::kCosine}, {"step", Kind::kStep}, {"constant", Kind::kConstant}};
  static std::vector<absl::string_view> Names();
  static Kind KindOf(absl::string_view name);  // cosine, if it is none of kNames

  Kind kind = Kind::kCosine;
  double peak = 0.1;
  double last = 0;     // cosine ends here
  double gamma = 0.1;  // step: factor at each milestone
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;
  std::vector<int64_t> milestones;  // step: ascending

  // Gives the rate of `step` in 0...total_steps-1. Warm-up (Goyal et al. 2017) is linear from
  // peak/(warmup_steps+1) up; after it come cosine (Loshchilov & Hutter 2017) from peak at its
  // first step to `last` at total_steps, or peak * gamma^(milestones reached), or peak.
  double LearningRate(int64_t step) const;
};

// Scales by the linear scaling rule: `rate` is meant for mini-batches of 256.
double ScaledToBatch(double rate, int64_t global_batch);

}  // namespace tutti::train
