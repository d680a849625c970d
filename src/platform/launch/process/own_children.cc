#include "platform/launch/process/own_children.h"

#include <set>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tutti::launch {
namespace {

absl::Mutex mutex(absl::kConstInit);

// Returns the one set of this process: a child is one of the process, not of an object.
std::set<pid_t>& Noted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  static auto* const noted = new std::set<pid_t>();
  return *noted;
}

}  // namespace

void OwnChild::Set(pid_t pid) {
  absl::MutexLock lock(&mutex);
  if (pid_ > 0) Noted().erase(pid_);
  pid_ = pid;
  if (pid_ > 0) Noted().insert(pid_);
}

std::vector<pid_t> WithoutOwnChildren(std::vector<pid_t> processes) {
  absl::MutexLock lock(&mutex);
  std::erase_if(processes, [](pid_t pid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return Noted().contains(pid);
  });
  return processes;
}

}  // namespace tutti::launch
