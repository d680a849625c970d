// How much of a node is free from now on: a step function of time that only knows planned ends.
// Inside the room scheduler only. Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "platform/scheduler/resources.h"

namespace tutti::scheduler {

// Times at which something can begin: from `first` up to `last`, both included. What is used from
// `since` on has room in between.
struct Window {
  absl::Time first, last;
};

// Invariant: a step at `now` exists, steps are in order of time, and between two of them what is
// free is constant. A step at InfiniteFuture is what is left once all that has an end has ended and
// what waits for the rest has its place. Free is below zero only where a caller took more than
// there was.
class Timeline {
 public:
  Timeline(absl::Time now, const Resources& free) : steps_{{now, free}} {}

  // Marks resources as in use from `begin` on, until `end`; until InfiniteFuture means for ever.
  void Take(const Resources& what, absl::Time begin, absl::Time end);
  // Returns whether all of `need` is free from `begin` on for `duration`; without an end, for ever.
  bool HasRoom(const Resources& need, absl::Time begin, absl::Duration duration) const;
  // Adds all times from which on it has room for as long, in order.
  void AddWindows(const Resources& need, absl::Duration duration, std::vector<Window>& to) const;
  // Returns since when it has the room that it has at `time`; InfiniteFuture if it has none then.
  absl::Time RoomSince(const Resources& need, absl::Time time) const;
  const Resources& now() const { return steps_.front().second; }
  const Resources& at_last() const { return steps_.back().second; }

 private:
  void SplitAt(absl::Time time);

  absl::InlinedVector<std::pair<absl::Time, Resources>, 3> steps_;
};

}  // namespace tutti::scheduler
