// Measures how busy this process keeps the machine's processors. Thread-compatible.
#pragma once

#include "absl/time/time.h"

namespace tutti::train {

// Returns the processor time of all threads of this process since it began, in its own code and in
// the kernel's (getrusage(2)).
absl::Duration ProcessorTime();

class Utilisation {
 public:
  // Measures from now on: `now` by the clock, `busy` as ProcessorTime.
  void Begin(absl::Time now, absl::Duration busy);
  // Returns how many processors were at work since Begin or the last Take, as a mean: 1.9 of two. 0
  // where the clock has not moved.
  double Take(absl::Time now, absl::Duration busy);

 private:
  absl::Time since_;
  absl::Duration busy_;
};

}  // namespace tutti::train
