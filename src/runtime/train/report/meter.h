// Meter measures where the time of steps goes. The parts add up to the step: each begins where the
// one before it ends, and "other" is what lies between two steps, save evaluations and checkpoints.
// Thread-compatible; time is passed in.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::train {

// Seconds of one rank.
struct StepParts {
  double data = 0;  // waiting for the loader
  double forward = 0, backward = 0;
  double communication = 0;  // what backward did not hide, the wait for slower ranks included
  double optimizer = 0;
  double other = 0;  // reports, signals, the loop itself

  double Sum() const;
  // Counts what a rank does itself, while others wait for it.
  double Own() const { return Sum() - communication; }
  StepParts& operator+=(const StepParts& added);
  StepParts operator-(const StepParts& taken) const;
  StepParts operator/(double divisor) const;
};

struct StepPart {
  absl::string_view name;
  double StepParts::*seconds;
};
inline constexpr std::array<StepPart, 6> kStepParts = {
    {{"data", &StepParts::data},
     {"forward", &StepParts::forward},
     {"backward", &StepParts::backward},
     {"communication", &StepParts::communication},
     {"optimizer", &StepParts::optimizer},
     {"other", &StepParts::other}}};

// What happened since the last Take.
struct Interval {
  int64_t steps = 0;
  int64_t images = 0;  // over all ranks
  double loss = 0;     // mean over the images
  StepParts parts;     // per step
  double images_per_second = 0;
};

class Meter {
 public:
  void Add(const StepParts& parts, double loss, int64_t images);
  // Adds the result of a step whose time was added before.
  void AddLate(double loss, int64_t images);
  bool has_images() const { return current_.images > 0; }  // a GPU's results come late
  Interval Take();
  // These count the whole run: steps only, without evaluation and checkpoints.
  double total_seconds() const { return total_seconds_; }
  int64_t total_images() const { return total_images_; }
  int64_t total_steps() const { return total_steps_; }
  StepParts total() const { return total_; }

 private:
  Interval current_;  // sums, until Take divides
  StepParts total_;
  double total_seconds_ = 0;
  int64_t total_images_ = 0, total_steps_ = 0;
};

}  // namespace tutti::train
