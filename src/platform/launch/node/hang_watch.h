// Ends a launcher that the kernel does not let go on: one of its threads waits in a call that no
// signal but SIGKILL ends (state D in ps), of a file server or a device that does not answer, and
// has not run once within a limit. What it had spooled the launcher that follows delivers.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tutti::launch {

// Reads TUTTI_HANG_LIMIT, in seconds: how long such a wait may last. Network file systems wait
// for a server that starts anew, and go on.
absl::Duration HangLimit();

// Watches all threads of this process from its construction on, by a thread of its own.
class HangWatch {
 public:
  // When the limit is over `note` gets the reason (exit_reason.h), then every process below this
  // one is killed, and then it is.
  HangWatch(std::filesystem::path note, absl::Duration limit);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

 private:
  struct Wait {
    uint64_t runs = 0;  // how often the thread has left the processor
    int looks = 0;      // that found it there
  };
  void Run();
  // Returns the thread that has been stuck for that many looks; 0: none.
  pid_t Look();
  void End(pid_t thread) const;

  const std::filesystem::path note_;
  const absl::Duration limit_;
  std::map<pid_t, Wait> waits_;  // of the threads that were stuck at the last look
  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::launch
