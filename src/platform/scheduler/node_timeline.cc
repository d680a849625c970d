#include "platform/scheduler/node_timeline.h"

#include <algorithm>

namespace tutti::scheduler {
namespace {

constexpr auto kBefore = [](const auto& step, absl::Time time) { return step.first < time; };

// Whether what begins before `end` is there at `time` too: for ever has no end.
bool Reaches(absl::Time end, absl::Time time) {
  return time < end || end == absl::InfiniteFuture();
}

}  // namespace

void Timeline::SplitAt(absl::Time time) {
  const auto at = std::lower_bound(steps_.begin(), steps_.end(), time, kBefore);
  if (at == steps_.begin() || (at != steps_.end() && at->first == time)) return;
  const Resources free = std::prev(at)->second;
  steps_.insert(at, {time, free});
}

void Timeline::Take(const Resources& what, absl::Time begin, absl::Time end) {
  if (begin >= end && end != absl::InfiniteFuture()) return;
  SplitAt(begin);
  if (end != absl::InfiniteFuture()) SplitAt(end);
  for (auto& [time, free] : steps_) {
    if (time >= begin && Reaches(end, time)) free -= what;
  }
}

bool Timeline::HasRoom(const Resources& need, absl::Time begin, absl::Duration duration) const {
  const absl::Time end = begin + duration;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (i + 1 < steps_.size() && steps_[i + 1].first <= begin) continue;  // it is over
    if (i > 0 && steps_[i].first > begin && !Reaches(end, steps_[i].first)) break;
    if (!Fits(need, steps_[i].second)) return false;
  }
  return true;
}

void Timeline::AddWindows(const Resources& need, absl::Duration duration,
                          std::vector<Window>& to) const {
  const bool is_endless = duration == absl::InfiniteDuration();
  const absl::Time* since = nullptr;
  for (const auto& [time, free] : steps_) {
    if (Fits(need, free)) {
      if (since == nullptr) since = &time;
      continue;
    }
    if (since != nullptr && !is_endless && time - *since >= duration) {
      to.push_back({*since, time - duration});
    }
    since = nullptr;
  }
  if (since != nullptr) to.push_back({*since, absl::InfiniteFuture()});
}

absl::Time Timeline::RoomSince(const Resources& need, absl::Time time) const {
  absl::Time since = absl::InfiniteFuture();
  for (const auto& [begin, free] : steps_) {
    if (begin > time) break;
    if (!Fits(need, free)) {
      since = absl::InfiniteFuture();
    } else if (since == absl::InfiniteFuture()) {
      since = begin;
    }
  }
  return since;
}

}  // namespace tutti::scheduler
