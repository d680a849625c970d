#include "base/threads/work_queues.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "base/threads/start_thread.h"

namespace tutti::base {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(25);  // at whether nobody waits any more

void DoOne(const std::string& queue, const WorkQueues::Task& task) {
  try {
    task();
  } catch (const std::exception& e) {
    spdlog::error("{}: {}", queue, e.what());
  }
}

}  // namespace

void WorkQueues::Join() {
  Stop(Deadline::After(absl::ZeroDuration()));
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void WorkQueues::Start() {
  absl::MutexLock lock(&mutex_);
  started_ = true;
}

bool WorkQueues::Stop(Deadline deadline) {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  ready_.clear();
  for (auto& [name, queue] : queues_) queue.waiting.clear();
  changed_.SignalAll();
  while (busy_ > 0 && !deadline.Expired()) {
    changed_.WaitWithTimeout(&mutex_, deadline.Remaining());
  }
  return busy_ == 0;
}

void WorkQueues::Do(const std::string& name, Task task) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    if (started_) {
      Queue& queue = queues_[name];
      queue.waiting.push_back(std::move(task));
      if (!queue.busy && queue.waiting.size() == 1) ready_.push_back(name);
      return Begin();
    }
  }
  DoOne(name, task);
}

// Where there is no room for a thread the others do it, or the next Do tries again.
void WorkQueues::Begin() {
  if (idle_ < ready_.size() && threads_.size() < most_threads_) {
    std::thread thread = StartThread([this] { Work(); });
    if (thread.joinable()) threads_.push_back(std::move(thread));
  }
  changed_.Signal();
}

bool WorkQueues::DoWithin(const std::string& queue, Task task, Deadline deadline,
                          const std::function<bool()>& given_up) {
  struct End {
    absl::Mutex mutex;
    absl::CondVar changed;
    bool reached ABSL_GUARDED_BY(mutex) = false;
    std::atomic<bool> done = false;
  };
  const auto end = std::make_shared<End>();
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
  }
  Do(queue, [end, task = std::move(task)] {
    const absl::Cleanup reached = [&] {
      absl::MutexLock lock(&end->mutex);
      end->reached = true;
      end->changed.SignalAll();
    };
    task();
    end->done = true;
  });
  bool goes_on = true;
  while (goes_on) {
    const bool is_given_up = given_up && given_up();
    const Deadline look = given_up ? Deadline::Sooner(deadline, Deadline::After(kLook)) : deadline;
    absl::MutexLock lock(&end->mutex);
    while (!is_given_up && !end->reached && !look.Expired()) {
      end->changed.WaitWithTimeout(&end->mutex, look.Remaining());
    }
    goes_on = !is_given_up && !end->reached && !deadline.Expired();
  }
  return end->done;
}

bool WorkQueues::Hangs(const std::string& queue, absl::Duration age) const {
  const absl::Duration before = SteadyNow() - age;
  absl::MutexLock lock(&mutex_);
  const auto is_old = [before](const Queue& one) { return one.busy && one.since < before; };
  const auto found = queues_.find(queue);
  if (found != queues_.end() && is_old(found->second)) return true;
  return busy_ == most_threads_ &&
         std::all_of(queues_.begin(), queues_.end(), [&is_old](const auto& entry) {
           return !entry.second.busy || is_old(entry.second);
         });
}

std::vector<std::pair<std::string, absl::Duration>> WorkQueues::OlderThan(
    absl::Duration age) const {
  const absl::Duration now = SteadyNow();
  std::vector<std::pair<std::string, absl::Duration>> old;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, queue] : queues_) {
    if (queue.busy && now - queue.since > age) old.emplace_back(name, now - queue.since);
  }
  return old;
}

void WorkQueues::Work() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    ++idle_;
    while (ready_.empty() && !stopping_) changed_.Wait(&mutex_);
    --idle_;
    if (stopping_) return;
    const std::string name = std::move(ready_.front());
    ready_.pop_front();
    Queue& queue = queues_.at(name);  // stays while it is busy
    Task task = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    queue.busy = true;
    queue.since = SteadyNow();
    ++busy_;
    mutex_.Unlock();
    DoOne(name, task);
    task = nullptr;  // what it holds goes outside of the lock, too
    mutex_.Lock();
    --busy_;
    queue.busy = false;
    if (stopping_) {
      changed_.SignalAll();
    } else if (queue.waiting.empty()) {
      queues_.erase(name);
    } else {
      ready_.push_back(name);
    }
  }
}

}  // namespace tutti::base
