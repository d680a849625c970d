// The explorer's runs: what can come next, doing it, and going back.
#include <cstring>

#include "runtime/comm/model/explorer_test_support.h"

namespace tutti::comm {

std::vector<int> Explorer::PositionsOf(int fiber) const {
  const FiberStep& next = fibers_[fiber].next;
  switch (next.step) {
    case FiberStep::kGo:
      return {0};
    case FiberStep::kLoad:
      return memory_.Loads(fiber, next.word, next.order);
    case FiberStep::kStore:
      return memory_.Stores(fiber, next.word, next.order);
    case FiberStep::kUpdate:
      return memory_.Updates(fiber, next.word, next.order);
    case FiberStep::kSleep: {  // 0: it goes on, 1: it sleeps
      std::vector<int> ways;
      if (memory_.MaySee(fiber, next.word, next.operand, false)) ways.push_back(0);
      if (memory_.MaySee(fiber, next.word, next.operand, true)) ways.push_back(1);
      return ways;
    }
    case FiberStep::kAwaitNotification:
      return fibers_[fiber].notified ? std::vector<int>{0} : std::vector<int>();
    case FiberStep::kAsleep:
    case FiberStep::kNothing:
      return {};
  }
  return {};
}

// A store has no reason to wait for anything.
void Explorer::Actions(std::vector<ModelAction>& actions) const {
  actions.clear();
  const auto add = [&](int fiber) {
    for (const int position : PositionsOf(fiber)) actions.push_back({fiber, position});
  };
  const int fibers = static_cast<int>(fibers_.size());
  for (int f = 0; f < fibers; ++f) {
    if (fibers_[f].next.step == FiberStep::kStore) return add(f);
  }
  if (LastMustGoOn()) return add(last_);
  for (int f = 0; f < fibers; ++f) add(f);
}

void Explorer::Step(ModelFiber& fiber, int position) {
  const FiberStep& next = fiber.next;
  if (next.step == FiberStep::kLoad) {
    fiber.read = memory_.Load(current_, next.word, position, next.order);
  } else if (next.step == FiberStep::kStore) {
    memory_.Store(current_, next.word, position, next.operand, next.order);
  } else if (next.step == FiberStep::kUpdate) {
    fiber.read =
        memory_.Update(current_, next.word, position, next.change, next.operand, next.order);
  } else {
    fiber.read = static_cast<uint64_t>(position);
  }
}

void Explorer::Perform(const ModelAction& action) {
  ModelFiber& fiber = fibers_[action.fiber];
  if (action.fiber != last_ && !PositionsOf(last_).empty()) ++preemptions_;
  current_ = last_ = action.fiber;
  Step(fiber, action.position);
  memory_.Tidy();
  if (_setjmp(main_) == 0) _longjmp(fiber.context, 1);
  memory_.Tidy();
}

void Explorer::Remember(ModelMoment& moment) const {
  moment.places.assign(fibers_.begin(), fibers_.end());
  moment.memory = memory_;
  moment.last = last_;
  moment.preemptions = preemptions_;
  moment.bytes.clear();
  const auto add = [&](const char* data, size_t size) {
    moment.bytes.insert(moment.bytes.end(), data, data + size);
  };
  for (const ModelFiber& fiber : fibers_) add(fiber.top() - fiber.used, fiber.used);
  for (const auto& [data, size] : kept_) add(data, size);
}

void Explorer::GoBackTo(const ModelMoment& moment) {
  const char* from = moment.bytes.data();
  const auto take = [&](char* data, size_t size) {
    std::memcpy(data, from, size);
    from += size;
  };
  for (size_t f = 0; f < fibers_.size(); ++f) {
    ModelFiber& fiber = fibers_[f];
    static_cast<FiberPlace&>(fiber) = moment.places[f];
    take(fiber.top() - fiber.used, fiber.used);
  }
  for (const auto& [data, size] : kept_) take(data, size);
  memory_ = moment.memory;
  last_ = moment.last;
  preemptions_ = moment.preemptions;
}

ModelChoice& Explorer::NewChoice() {
  if (depth_ == path_.size()) path_.emplace_back();
  ModelChoice& choice = path_[depth_++];
  choice.taken = 0;
  return choice;
}

uint64_t Explorer::HashOfState() const {
  uint64_t hash = memory_.Hash();
  if (options_.most_preemptions < std::numeric_limits<int>::max()) {
    hash = Mix(Mix(hash, static_cast<uint64_t>(last_)), static_cast<uint64_t>(preemptions_));
  }
  for (const ModelFiber& fiber : fibers_) {
    hash = Mix(hash, fiber.history);
    hash = Mix(hash, static_cast<uint64_t>(fiber.next.step) * 2 + fiber.notified);
  }
  for (const auto& [data, size] : kept_) {
    for (size_t at = 0; at < size; ++at) hash = Mix(hash, static_cast<unsigned char>(data[at]));
  }
  return hash;
}

void Explorer::End() {
  for (const ModelFiber& fiber : fibers_) {
    if (fiber.next.step != FiberStep::kNothing) return Fail("nobody can go on");
  }
  running_ = false;
  if (options_.end) options_.end();
  running_ = true;
}

// Along the first choice each time.
void Explorer::Run() {
  std::vector<ModelAction> actions;
  while (result_.failure.empty()) {
    Actions(actions);
    if (actions.empty()) return End();
    if (!seen_.insert(HashOfState()).second) return;
    ModelChoice& choice = NewChoice();
    choice.actions = actions;
    if (actions.size() > 1) Remember(choice.before);
    Perform(actions[0]);
  }
}

bool Explorer::Backtrack() {
  while (depth_ > 0 && path_[depth_ - 1].taken + 1 == path_[depth_ - 1].actions.size()) --depth_;
  if (depth_ == 0) return false;
  ModelChoice& last = path_[depth_ - 1];
  GoBackTo(last.before);
  Perform(last.actions[++last.taken]);
  return true;
}

Interleavings::Result Explorer::Explore(const std::function<void()>& reset,
                                        const Interleavings::Body& body) {
  body_ = &body;
  MakeFibers();
  reset();
  running_ = true;
  do {
    Run();
    ++result_.runs;
  } while (result_.failure.empty() && Backtrack());
  result_.states = seen_.size();
  result_.orders.assign(places_.begin(), places_.end());
  return result_;
}

}  // namespace tutti::comm
