#include "platform/scheduler/profile.h"

#include <iterator>

namespace tutti::scheduler {

Profile::Profile(absl::Time now, int free) : free_from_{{now, free}} {}

void Profile::SplitAt(absl::Time time) {
  const auto after = free_from_.upper_bound(time);
  if (after != free_from_.begin()) free_from_.emplace(time, std::prev(after)->second);
}

void Profile::Take(int count, absl::Time begin, absl::Time end) {
  if (begin >= end) return;
  SplitAt(begin);
  if (end != absl::InfiniteFuture()) SplitAt(end);
  const auto last = free_from_.lower_bound(end);
  for (auto step = free_from_.lower_bound(begin); step != last; ++step) step->second -= count;
}

absl::Time Profile::Earliest(int count, absl::Duration duration) const {
  auto begin = free_from_.end();
  for (auto step = free_from_.begin(); step != free_from_.end(); ++step) {
    if (begin != free_from_.end() && step->first >= begin->first + duration) return begin->first;
    if (step->second < count) {
      begin = free_from_.end();
    } else if (begin == free_from_.end()) {
      begin = step;
    }
  }
  return begin == free_from_.end() ? absl::InfiniteFuture() : begin->first;
}

int Profile::FreeAt(absl::Time time) const {
  const auto after = free_from_.upper_bound(time);
  return after == free_from_.begin() ? 0 : std::prev(after)->second;
}

}  // namespace tutti::scheduler
