// Profile says how many nodes are free from now on, as a step function of time that only knows
// planned ends. Inside the room scheduler only. Not thread-safe.
#pragma once

#include <map>

#include "absl/time/time.h"

namespace tutti::scheduler {

// Invariant: a step at `now` exists; between two steps the number of free nodes is constant. It can
// be negative only where a caller took more than there was.
class Profile {
 public:
  Profile(absl::Time now, int free);

  // `count` nodes are in use from `begin` on, until `end`.
  void Take(int count, absl::Time begin, absl::Time end);
  // The first time from which on `count` nodes are free for `duration`; InfiniteFuture if that is
  // not known.
  absl::Time Earliest(int count, absl::Duration duration) const;
  int FreeAt(absl::Time time) const;

 private:
  void SplitAt(absl::Time time);

  std::map<absl::Time, int> free_from_;
};

}  // namespace tutti::scheduler
