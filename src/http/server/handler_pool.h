// HandlerPool runs the work of connections on threads, in lanes. Each lane has a limit of its own
// on the tasks that run at a time, so that a full lane delays no task of another one. Within a lane
// a group of tasks (of a job, of a kind of call) gets kMostOfAGroup threads at most, and groups
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

// A Lane is for one kind of work. Bodies that come in and files that go out have lanes of their
// own, since they belong to different folders, of which one may hang.
enum class Lane {
  kProtocol,     // reading headers and small bodies
  kStranger,     // calls and bodies of clients without a valid token
  kNode,         // quick calls of nodes
  kUser,         // quick calls of users
  kUserSlow,     // users' calls that may take seconds
  kUserForeign,  // users' calls that look at places which they name
  kMonitor,      // calls of monitors
  kNodeIn,       // bodies that nodes send
  kNodeOut,      // files and streams that nodes fetch
  kUserIn,
  kUserOut
};
inline constexpr size_t kLanes = 11;
inline constexpr int kMostOfAGroup = 4;

// Place is where a task waits and runs.
struct Place {
  Lane lane = Lane::kProtocol;
  std::string group;  // "": it is of no group, and may use all threads of the lane
};

class HandlerPool {
 public:
  // A task sets `place` to the place in which it was last (see Move).
  using Task = std::function<void(Place& place)>;

  // `most` is how many tasks may run in each lane at a time, at least one.
  explicit HandlerPool(const std::array<int, kLanes>& most);
  ~HandlerPool();

  // Adds a task. The tasks of one group in a lane begin in the order in which they were added.
  void Add(const Place& place, Task task);
  // Moves the calling task, which goes on in `to` at once. False if others wait there: then the
  // task must be added there instead.
  bool Move(const Place& from, const Place& to);
  // Returns whether the first task that waits there has waited for `patience`, so that a task which
  // is added would only wait, too.
  bool Stuck(const Place& place, absl::Duration patience) const;
  // Returns how many threads there are now.
  int threads() const;
  // Waits for the tasks that run, and drops the others.
  void Stop();

 private:
  struct State;
  static void Work(const std::shared_ptr<State>& state);
  static void StartThread(const std::shared_ptr<State>& state);
  static bool AwaitWork(State& state);

  const std::shared_ptr<State> state_;  // shared with the threads
};

}  // namespace tutti::http
