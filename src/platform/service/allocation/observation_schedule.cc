#include "platform/service/allocation/observation_schedule.h"

#include <algorithm>

namespace tutti::service {
namespace {

// A launcher ends milliseconds after its job; the next job may wait for just that node.
constexpr absl::Duration kEndsSoon = absl::Seconds(1);
constexpr absl::Duration kSoon = absl::Milliseconds(4);
// A look at ten thousand jobs that wait takes tens of milliseconds: then it is not taken five times
// a second. What one wakes for is done at once also then.
constexpr int kRestPerWork = 120;
constexpr absl::Duration kWorthARest = absl::Milliseconds(2);
// Whatever a look takes: limits of jobs wait for it, and after half a minute without one the
// service takes itself for asleep (launcher_silence.cc).
constexpr absl::Duration kLongestRest = absl::Seconds(10);

}  // namespace

absl::Duration ObservationSchedule::Interval() const {
  const LeavingAllocations::Map& all = leaving_.all();
  const absl::Duration now = state_.clock->SinceBoot();
  const bool ends_soon = std::any_of(all.begin(), all.end(), [now](const auto& entry) {
    return now - entry.second.since < kEndsSoon;
  });
  const absl::Duration rest =
      work_ < kWorthARest ? absl::ZeroDuration() : std::min(work_ * kRestPerWork, kLongestRest);
  const absl::Duration wanted = ends_soon ? std::min(kSoon, state_.options.observe_interval)
                                          : state_.options.observe_interval;
  return std::max(rest, wanted);
}

bool ObservationSchedule::IsDue() const { return state_.clock->SinceBoot() - last_ >= Interval(); }

}  // namespace tutti::service
