// Threads for the work of connections. Each lane has a number of its own that may work at a time,
// so that who fills one lane keeps nobody in another waiting. Threads are started when they are
// needed and end when they have nothing to do. Thread-safe. Internal to this room.
#pragma once

#include <array>
#include <functional>
#include <memory>

namespace tutti::http {

enum class Lane { kProtocol, kStranger, kNode, kUser, kNodeBulk, kUserBulk };
inline constexpr size_t kLanes = 6;

class HandlerPool {
 public:
  // Has `lane` set to the lane that it was in last (see Move).
  using Task = std::function<void(Lane& lane)>;

  // `most`: how many may work in each lane, at least one.
  explicit HandlerPool(const std::array<int, kLanes>& most);
  ~HandlerPool();

  // In the order of Add within a lane.
  void Add(Lane lane, Task task);
  // The task that calls goes on in `to` at once. False: others are before it; let it be added
  // there.
  bool Move(Lane from, Lane to);
  // How many threads there are now.
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
