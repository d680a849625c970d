// WorkQueues runs work that may wait for long, or for ever: calls on engines, files, a network.
// Each piece belongs to a queue, named after what it would wait for (a compute, a folder). The
// pieces of one queue are done one after another, in their order; those of different queues at the
// same time, each on a thread of its own, up to a number of threads. So what hangs holds its own
// queue and one thread.
//
//   WorkQueues work(16);
//   work.Start();
//   work.Do("compute hpc", [engine] { engine->Stop(…); });
//
// Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"

namespace tutti::base {

class WorkQueues {
 public:
  using Task = std::function<void()>;

  explicit WorkQueues(size_t most_threads) : most_threads_(most_threads) {}
  ~WorkQueues() { Join(); }
  WorkQueues(const WorkQueues&) = delete;
  WorkQueues& operator=(const WorkQueues&) = delete;

  // Starts the threads; before it, tasks are done in the caller's thread, at once: so tests go step
  // by step. An exception of a task is logged and ends that task alone.
  void Start();
  // Drops what waits: who asked for it asks the next process. What is at hand goes on; with a
  // deadline, waits for its end that long. False if something is still at hand.
  bool Stop(Deadline deadline);

  // Does what Stop does, and waits for what is at hand, for ever if it hangs.
  void Join();

  // Gives `queue` the task; drops it after Stop.
  void Do(const std::string& queue, Task task);
  // Does the same, and waits for its end. False if it is not done by the deadline; it is done later
  // all the same, so what it refers to has to live on its own. False at once after Stop, and once
  // the task has thrown; and once `given_up` returns true, which is asked before it waits and now
  // and then.
  bool DoWithin(const std::string& queue, Task task, Deadline deadline,
                const std::function<bool()>& given_up = nullptr);

  // Returns whether its task at hand, or that of each thread, is older than `age`, so that another
  // had better not wait for it.
  bool Hangs(const std::string& queue, absl::Duration age) const;
  // Returns the queues whose task at hand is older than `age`, with its age.
  std::vector<std::pair<std::string, absl::Duration>> OlderThan(absl::Duration age) const;

 private:
  struct Queue {
    std::deque<Task> waiting;
    bool busy = false;
    absl::Duration since;  // SteadyNow, of the task at hand
  };
  void Work();
  void Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_threads_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(mutex_);  // those that have work
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);  // have work, and no thread is at them
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;                // threads
  size_t busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::base
