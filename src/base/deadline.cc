#include "base/deadline.h"

#include <algorithm>
#include <limits>

namespace tutti::base {

Deadline Deadline::After(absl::Duration duration) {
  // A century stands for "as long as the caller likes" without overflowing the clock.
  const absl::Duration bounded = std::min(duration, absl::Hours(24 * 365 * 100));
  return Deadline(std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(bounded));
}

Deadline Deadline::Sooner(Deadline a, Deadline b) { return a.at_ < b.at_ ? a : b; }

bool Deadline::Expired() const { return std::chrono::steady_clock::now() >= at_; }

absl::Duration Deadline::Remaining() const {
  return std::max(absl::ZeroDuration(), absl::FromChrono(at_ - std::chrono::steady_clock::now()));
}

int Deadline::RemainingMillis() const {
  const int64_t millis = absl::ToInt64Milliseconds(Remaining() + absl::Microseconds(999));
  return static_cast<int>(std::min<int64_t>(millis, std::numeric_limits<int>::max()));
}

absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace tutti::base
