// RetryPause tells how long to wait before the next attempt: twice as long each time, up to a
// limit, and by chance up to half of that less, so that not all whom a service left come back to it
// at once. Not thread-safe.
#pragma once

#include <algorithm>
#include <random>

#include "absl/time/time.h"

namespace tutti::base {

class RetryPause {
 public:
  RetryPause(absl::Duration first, absl::Duration longest)
      : first_(first), longest_(longest), next_(first) {}

  absl::Duration Next() {
    const absl::Duration whole = next_;
    next_ = std::min(2 * whole, longest_);
    return whole * std::uniform_real_distribution<double>(0.5, 1)(chance_);
  }

  // After a success: begins anew.
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_, longest_;
  absl::Duration next_;
  std::minstd_rand chance_{std::random_device{}()};
};

}  // namespace tutti::base
