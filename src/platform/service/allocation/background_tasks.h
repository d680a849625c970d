// Work that may take long (reading files, linking folders), one after another on a thread of its
// own, so that the loop waits for no disk. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tutti::service {

class BackgroundTasks {
 public:
  ~BackgroundTasks() { Stop(); }

  void Start();
  // Ends the thread after the task at hand; the others are dropped: who asked will ask again.
  void Stop();
  // Without a thread the task is done at once, here.
  void Do(std::function<void()> task);

 private:
  void Work();

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::service
