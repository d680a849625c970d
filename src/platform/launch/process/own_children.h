// Knows the programs that the launcher runs for itself beside the job's processes, such as
// tutti-storage while it puts outputs: they are children of the launcher as those are, and are not
// ended with them. A program that is noted must be started, and waited for, by a thread other than
// that of NodeProcesses. Thread-safe.
#pragma once

#include <sys/types.h>

#include <vector>

namespace tutti::launch {

// Notes a child for as long as the object lives.
class OwnChild {
 public:
  OwnChild() = default;
  ~OwnChild() { Set(0); }
  OwnChild(const OwnChild&) = delete;
  OwnChild& operator=(const OwnChild&) = delete;

  // Notes `pid` in place of what was noted before; 0: none.
  void Set(pid_t pid);

 private:
  pid_t pid_ = 0;
};

// Returns `processes` without those that are noted.
std::vector<pid_t> WithoutOwnChildren(std::vector<pid_t> processes);

}  // namespace tutti::launch
