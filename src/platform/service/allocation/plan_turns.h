// PlanTurns bounds how many threads wait for one file server: of the plans that read from a mount
// which may need one, whatever else they read from, those of a few queues are at hand at a time;
// the others wait without a thread. One that reads from several mounts needs room at each, takes it
// at none until it has room at all of them, and never takes the last of a mount: so a server that
// is away holds no plan that reads from this machine alone or from one other server. While it
// waits, those that come after it and read from one of its mounts alone take fewer there, so that
// room for it comes, unless two others that read from several hang there. Thread-safe.
//
// A plan costs its own turn alone, however many wait: those of one queue wait in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/threads/work_queues.h"
#include "platform/service/allocation/plan_queue.h"

namespace tutti::service {

class PlanTurns {
 public:
  // `work` is ended (WorkQueues::Join) before this goes.
  explicit PlanTurns(base::WorkQueues* work) : work_(work) {}
  PlanTurns(const PlanTurns&) = delete;
  PlanTurns& operator=(const PlanTurns&) = delete;

  // Gives the plan to its queue, now or once others have ended.
  void Do(const PlanPlace& place, std::function<void()> run) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Plan {
    PlanPlace place;
    std::function<void()> run;
    int64_t number = 0;  // in the order in which they came
  };
  // Takes out those that wait and have room, in their order, and counts them as at hand.
  std::vector<Plan> TakeThoseWithRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `is_behind`: one that reads from several waits before it, and from one of its mounts.
  bool HasRoom(const PlanPlace& place, bool is_behind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsBehindAnyWaiting(const PlanPlace& place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteAtHand(const PlanPlace& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOn(std::vector<Plan> plans) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const PlanPlace& place) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues of a mount that have plans at hand: all, and those that read from it alone.
  struct AtHand {
    int queues = 0, alone = 0;
  };

  base::WorkQueues* const work_;
  absl::Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Plans that were given to `work_` and have not ended, by queue; queues that have such, by mount.
  std::map<std::string, size_t> plans_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, AtHand> at_hand_ ABSL_GUARDED_BY(mutex_);
  // The keys are queues, none of them empty: the first has no room, and so have none behind it.
  std::map<std::string, std::deque<Plan>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service
