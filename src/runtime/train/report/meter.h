// Where the time of steps goes. The parts add up to the step: each begins where the one before it
// ends. Thread-compatible; time is passed in.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace tutti::train {

struct StepParts {
  double data = 0, forward = 0, backward = 0, communication = 0, optimizer = 0;  // seconds

  double Sum() const { return data + forward + backward + communication + optimizer; }
  StepParts& operator+=(const StepParts& other);
  StepParts operator/(double divisor) const;
};

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
  // Of a step whose time was added before.
  void AddLate(double loss, int64_t images);
  bool has_images() const { return current_.images > 0; }  // a GPU's results come late
  Interval Take();
  // Over the whole run: steps only, without evaluation and checkpoints.
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
