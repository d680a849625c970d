// Patience is how long a delivery goes on that the service does not take: until a deadline, and
// beyond it as long as the service says that it takes it later. Copyable, immutable.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "base/deadline.h"

namespace tutti::launch {

// That a service has never put anything off.
inline constexpr absl::Duration kNeverPutOff = -absl::InfiniteDuration();

class Patience {
 public:
  // Ends at `deadline`, whatever the service says.
  Patience(base::Deadline deadline) : deadline_(deadline) {}  // NOLINT: a deadline is one
  // Ends after `limit` in which the service has not put off what is delivered.
  static Patience For(absl::Duration limit) {
    Patience patience(base::Deadline::After(limit));
    patience.after_put_off_ = limit;
    return patience;
  }

  // Returns when it ends, where the service has put off last what is delivered at `put_off`, by
  // base::SteadyNow.
  base::Deadline EndAfter(absl::Duration put_off) const {
    if (after_put_off_ == absl::ZeroDuration()) return deadline_;
    const absl::Duration rest = put_off + after_put_off_ - base::SteadyNow();
    return base::Deadline::After(std::max(deadline_.Remaining(), rest));
  }

 private:
  base::Deadline deadline_;
  absl::Duration after_put_off_;
};

}  // namespace tutti::launch
