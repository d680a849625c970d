// HandlerPool runs the work of connections on threads, in lanes. Each lane has a number of its own
// that may work at a time, so that who fills one lane keeps nobody in another waiting. Within a
// lane those of one group (a job, a kind of call) have a few of its threads at most, and groups
// take turns. Threads are started when they are needed and end when they have nothing to do.
// Thread-safe. Internal to this room.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace tutti::http {

// The protocol and strangers; calls of nodes and of users; users' calls that may take seconds, and
// those that look at places that they name; calls of monitors; what nodes and users send and fetch:
// the two are apart, as one of them goes to another folder than the other comes from.
enum class Lane {
  kProtocol,
  kStranger,
  kNode,
  kUser,
  kUserSlow,
  kUserForeign,
  kMonitor,
  kNodeIn,
  kNodeOut,
  kUserIn,
  kUserOut
};
inline constexpr size_t kLanes = 11;
inline constexpr int kMostOfAGroup = 4;

struct Place {
  Lane lane = Lane::kProtocol;
  std::string group;  // empty: of none, which has all of the lane
};

class HandlerPool {
 public:
  // Has `place` set to the place that it was in last (see Move).
  using Task = std::function<void(Place& place)>;

  // Takes from `most` how many may work in each lane, at least one.
  explicit HandlerPool(const std::array<int, kLanes>& most);
  ~HandlerPool();

  // Adds a task. The tasks of one group in a lane are run in the order of Add.
  void Add(const Place& place, Task task);
  // Moves the calling task, which goes on in `to` at once. False: others are before it; let it be
  // added there.
  bool Move(const Place& from, const Place& to);
  // Returns whether the first that waits there has waited that long: what is added would only wait,
  // too.
  bool Stuck(const Place& place, absl::Duration patience) const;
  // Returns how many threads there are now.
  int threads() const;
  // Waits for the tasks that are under way; the others are dropped.
  void Stop();

 private:
  struct State;
  static void Work(const std::shared_ptr<State>& state);
  static void StartThread(const std::shared_ptr<State>& state);
  static bool AwaitWork(State& state);

  const std::shared_ptr<State> state_;  // also of its threads
};

}  // namespace tutti::http
