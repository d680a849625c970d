#include "platform/launch/delivery/beat.h"

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBeat = absl::Minutes(1);
constexpr double kShortestBeat = 0.1, kLongestBeat = 3600;  // seconds

}  // namespace

absl::Duration BeatOf(const spec::LaunchPlan& plan) {
  const bool is_on_a_cluster = plan.boot_id.empty();
  if (!is_on_a_cluster || plan.nodes.size() < 2) return absl::ZeroDuration();
  const char* const text = std::getenv("TUTTI_BEAT");
  double seconds = 0;
  const bool is_said = text != nullptr && absl::SimpleAtod(text, &seconds) &&
                       seconds >= kShortestBeat && seconds <= kLongestBeat;
  return is_said ? absl::Seconds(seconds) : kBeat;
}

}  // namespace tutti::launch
