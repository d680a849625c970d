#include "platform/http/handler_pool.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <optional>
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
  struct LaneState {
    int most = 0;
    int working = 0;
    std::deque<Task> waiting;
    bool MayBegin() const { return !waiting.empty() && working < most; }
  };

  // The next lane with work, in turn, so that none waits for all of another's.
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
    for (const LaneState& lane : lanes) {
      count += std::min(static_cast<int>(lane.waiting.size()), lane.most - lane.working);
    }
    return count;
  }

  // A thread that has nothing to do.
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

HandlerPool::HandlerPool(const std::array<int, kLanes>& most) : state_(std::make_shared<State>()) {
  absl::MutexLock lock(&state_->mutex);
  for (size_t i = 0; i < kLanes; ++i) state_->lanes[i].most = most[i];
}

HandlerPool::~HandlerPool() { Stop(); }

// A thread for work that none looks for yet.
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

// False: there was nothing for so long that the thread is to end.
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

void HandlerPool::Add(Lane lane, Task task) {
  absl::MutexLock lock(&state_->mutex);
  if (state_->stopping) return;
  state_->lanes[Index(lane)].waiting.push_back(std::move(task));
  StartThread(state_);
}

bool HandlerPool::Move(Lane from, Lane to) {
  absl::MutexLock lock(&state_->mutex);
  auto& next = state_->lanes[Index(to)];
  if (!next.waiting.empty() || next.working >= next.most) return false;
  ++next.working;
  --state_->lanes[Index(from)].working;
  StartThread(state_);
  return true;
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
    auto& at = state->lanes[Index(*lane)];
    Task task = std::move(at.waiting.front());
    at.waiting.pop_front();
    ++at.working;
    --state->looking;
    state->mutex.Unlock();
    task(*lane);
    task = nullptr;
    state->mutex.Lock();
    --state->lanes[Index(*lane)].working;
    ++state->looking;
  }
  --state->looking;
  --state->threads;
  state->ended.SignalAll();
}

void HandlerPool::Stop() {
  std::array<std::deque<Task>, kLanes> dropped;  // destroyed after the lock is released
  absl::MutexLock lock(&state_->mutex);
  state_->stopping = true;
  for (size_t i = 0; i < kLanes; ++i) dropped[i] = std::move(state_->lanes[i].waiting);
  for (State::Idle* const one : state_->idle) one->wake.Signal();
  while (state_->threads > 0) state_->ended.Wait(&state_->mutex);
}

}  // namespace tutti::http
