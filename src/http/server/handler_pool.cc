#include "http/server/handler_pool.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/deadline.h"

namespace tutti::http {
namespace {

constexpr int kKept = 2;  // threads that stay
constexpr absl::Duration kIdle = absl::Seconds(10);

size_t Index(Lane lane) { return static_cast<size_t>(lane); }

}  // namespace

struct HandlerPool::State {
  struct Waiting {
    Task task;
    absl::Duration added = base::SteadyNow();
  };
  struct Group {
    std::deque<Waiting> waiting;
    int working = 0;
  };
  // `ready` has each group of which a task waits and may begin, once.
  struct LaneState {
    int most = 0;
    int working = 0;
    std::map<std::string, Group> groups;  // those with tasks
    std::deque<std::string> ready;

    static int MostOf(const std::string& group, int most) {
      return group.empty() ? most : std::min(most, kMostOfAGroup);
    }
    int RoomOf(const std::string& name, const Group& group) const {
      return std::min(static_cast<int>(group.waiting.size()), MostOf(name, most) - group.working);
    }
    bool MayBegin() const { return !ready.empty() && working < most; }
    int Startable() const {
      int count = 0;
      for (const std::string& name : ready) {
        if (count >= most - working) break;
        count += RoomOf(name, groups.at(name));
      }
      return std::min(count, most - working);
    }
    void Add(const std::string& name, Task task);
    Task Begin(std::string& name);
    void Enter(const std::string& name) {
      ++working;
      ++groups[name].working;
    }
    void Leave(const std::string& name);
  };

  // Returns the next lane with work, in turn, so that no lane waits for all the work of another.
  std::optional<Lane> NextLane() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    for (size_t i = 1; i <= kLanes; ++i) {
      const size_t at = (last + i) % kLanes;
      if (!lanes[at].MayBegin()) continue;
      last = at;
      return static_cast<Lane>(at);
    }
    return std::nullopt;
  }
  int Startable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    int count = 0;
    for (const LaneState& lane : lanes) count += lane.Startable();
    return count;
  }

  // An Idle stands for a thread that has nothing to do.
  struct Idle {
    absl::CondVar wake;
    bool woken = false;
  };

  absl::Mutex mutex;
  absl::CondVar ended;
  std::array<LaneState, kLanes> lanes ABSL_GUARDED_BY(mutex);
  size_t last ABSL_GUARDED_BY(mutex) = 0;
  int threads ABSL_GUARDED_BY(mutex) = 0;
  int looking ABSL_GUARDED_BY(mutex) = 0;          // threads that are about to look for work
  std::vector<Idle*> idle ABSL_GUARDED_BY(mutex);  // the last goes on first: the others may end
  bool stopping ABSL_GUARDED_BY(mutex) = false;
};

void HandlerPool::State::LaneState::Add(const std::string& name, Task task) {
  Group& group = groups[name];
  const bool listed = RoomOf(name, group) > 0;
  group.waiting.push_back({std::move(task)});
  if (!listed && RoomOf(name, group) > 0) ready.push_back(name);
}

// Returns a task of the group whose turn it is, which counts as working from here on.
HandlerPool::Task HandlerPool::State::LaneState::Begin(std::string& name) {
  name = std::move(ready.front());
  ready.pop_front();
  Group& group = groups.at(name);
  Task task = std::move(group.waiting.front().task);
  group.waiting.pop_front();
  Enter(name);
  if (RoomOf(name, group) > 0) ready.push_back(name);
  return task;
}

void HandlerPool::State::LaneState::Leave(const std::string& name) {
  --working;
  const auto found = groups.find(name);
  Group& group = found->second;
  const bool listed = RoomOf(name, group) > 0;
  --group.working;
  if (!listed && RoomOf(name, group) > 0) ready.push_back(name);
  if (group.working == 0 && group.waiting.empty()) groups.erase(found);
}

HandlerPool::HandlerPool(const std::array<int, kLanes>& most) : state_(std::make_shared<State>()) {
  absl::MutexLock lock(&state_->mutex);
  for (size_t i = 0; i < kLanes; ++i) state_->lanes[i].most = most[i];
}

HandlerPool::~HandlerPool() { Stop(); }

// Starts a thread for work that no other thread is about to take.
void HandlerPool::StartThread(const std::shared_ptr<State>& state) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (state->stopping || state->Startable() <= state->looking) return;
  if (!state->idle.empty()) {
    State::Idle* const next = state->idle.back();
    state->idle.pop_back();
    next->woken = true;
    next->wake.Signal();
    ++state->looking;
    return;
  }
  try {
    std::thread([state] { Work(state); }).detach();
    ++state->threads;
    ++state->looking;
  } catch (const std::system_error& error) {
    spdlog::error("cannot start a thread for requests: {}", error.what());  // the others go on
  }
}

// Waits for work. Returns false if there was none for so long that the thread is to end.
bool HandlerPool::AwaitWork(State& state) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  State::Idle self;
  state.idle.push_back(&self);
  --state.looking;
  const base::Deadline deadline = base::Deadline::After(kIdle);
  while (!self.woken && !state.stopping && !deadline.Expired()) {
    self.wake.WaitWithTimeout(&state.mutex, deadline.Remaining());
  }
  if (self.woken) return true;
  std::erase(state.idle, &self);
  ++state.looking;
  return state.threads <= kKept || state.Startable() > 0;
}

void HandlerPool::Add(const Place& place, Task task) {
  absl::MutexLock lock(&state_->mutex);
  if (state_->stopping) return;
  state_->lanes[Index(place.lane)].Add(place.group, std::move(task));
  StartThread(state_);
}

bool HandlerPool::Move(const Place& from, const Place& to) {
  absl::MutexLock lock(&state_->mutex);
  State::LaneState& next = state_->lanes[Index(to.lane)];
  const auto group = next.groups.find(to.group);
  const int of_group = group == next.groups.end() ? 0 : group->second.working;
  const bool full =
      next.working >= next.most || of_group >= State::LaneState::MostOf(to.group, next.most);
  if (!next.ready.empty() || full) return false;
  next.Enter(to.group);
  state_->lanes[Index(from.lane)].Leave(from.group);
  StartThread(state_);
  return true;
}

bool HandlerPool::Stuck(const Place& place, absl::Duration patience) const {
  absl::MutexLock lock(&state_->mutex);
  const State::LaneState& lane = state_->lanes[Index(place.lane)];
  const auto group = lane.groups.find(place.group);
  return group != lane.groups.end() && !group->second.waiting.empty() &&
         base::SteadyNow() - group->second.waiting.front().added >= patience;
}

int HandlerPool::threads() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->threads;
}

void HandlerPool::Work(const std::shared_ptr<State>& state) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  absl::MutexLock lock(&state->mutex);
  while (!state->stopping) {
    std::optional<Lane> lane = state->NextLane();
    if (!lane) {
      if (!AwaitWork(*state)) break;
      continue;
    }
    Place place{.lane = *lane};
    Task task = state->lanes[Index(*lane)].Begin(place.group);
    --state->looking;
    state->mutex.Unlock();
    task(place);
    task = nullptr;
    state->mutex.Lock();
    state->lanes[Index(place.lane)].Leave(place.group);
    ++state->looking;
  }
  --state->looking;
  --state->threads;
  state->ended.SignalAll();
}

void HandlerPool::Stop() {
  // The tasks are destroyed after the lock is released.
  std::vector<std::deque<State::Waiting>> dropped;
  absl::MutexLock lock(&state_->mutex);
  state_->stopping = true;
  for (State::LaneState& lane : state_->lanes) {
    lane.ready.clear();
    for (auto& [name, group] : lane.groups) dropped.push_back(std::exchange(group.waiting, {}));
  }
  for (State::Idle* const one : state_->idle) one->wake.Signal();
  while (state_->threads > 0) state_->ended.Wait(&state_->mutex);
}

}  // namespace tutti::http
