// Debian's Abseil is built without ThreadSanitizer: what absl::Mutex orders, the sanitizer would
// not see, and report every access under one as a race. In a build for it (tools/tsan) programs
// therefore have these in place of Abseil's. They call those, and say what they order: who gets a
// mutex sees all that was done by those who gave it back.
//
// Nothing is looked for within Abseil: it runs the conditions of those that wait in the thread that
// gives the mutex back.
#ifdef __SANITIZE_THREAD__

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <string>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace {

class NotLookedAt {
 public:
  NotLookedAt() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~NotLookedAt() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};

// A member function of Abseil's own library.
template <typename Signature>
class Abseil;
template <typename Result, typename... Arguments>
class Abseil<Result(Arguments...)> {
 public:
  // Finds the function by the compiler's name of it, behind that of the namespace: "5Mutex4LockEv".
  explicit Abseil(const std::string& name, bool is_const = false) {
    const std::string space = ABSL_INTERNAL_INLINE_NAMESPACE_STR;
    const std::string prefix = is_const ? "_ZNK4absl" : "_ZN4absl";
    const std::string symbol = prefix + std::to_string(space.size()) + space + name;
    function_ = reinterpret_cast<Result (*)(Arguments...)>(dlsym(RTLD_NEXT, symbol.c_str()));
  }
  Result operator()(Arguments... arguments) const {
    const NotLookedAt within;
    return function_(arguments...);
  }

 private:
  Result (*function_)(Arguments...);
};

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const Abseil<void(Mutex*)> lock("5Mutex4LockEv");
  lock(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static const Abseil<bool(Mutex*)> try_lock("5Mutex7TryLockEv");
  const bool has_it = try_lock(this);
  if (has_it) __tsan_acquire(this);
  return has_it;
}

void Mutex::Unlock() {
  static const Abseil<void(Mutex*)> unlock("5Mutex6UnlockEv");
  __tsan_release(this);
  unlock(this);
}

void Mutex::Await(const Condition& condition) {
  static const Abseil<void(Mutex*, const Condition&)> await("5Mutex5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  await(this, condition);
  __tsan_acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const Abseil<bool(Mutex*, const Condition&, Duration)> await(
      "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  __tsan_release(this);
  const bool holds = await(this, condition, timeout);
  __tsan_acquire(this);
  return holds;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const Abseil<bool(Mutex*, const Condition&, Time)> await(
      "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  __tsan_release(this);
  const bool holds = await(this, condition, deadline);
  __tsan_acquire(this);
  return holds;
}

void Mutex::LockWhen(const Condition& condition) {
  static const Abseil<void(Mutex*, const Condition&)> lock("5Mutex8LockWhenERKNS0_9ConditionE");
  lock(this, condition);
  __tsan_acquire(this);
}

void CondVar::Wait(Mutex* mutex) {
  static const Abseil<void(CondVar*, Mutex*)> wait("7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  wait(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const Abseil<bool(CondVar*, Mutex*, Duration)> wait(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mutex);
  const bool ended = wait(this, mutex, timeout);
  __tsan_acquire(mutex);
  return ended;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const Abseil<bool(CondVar*, Mutex*, Time)> wait(
      "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool ended = wait(this, mutex, deadline);
  __tsan_acquire(mutex);
  return ended;
}

// HasBeenNotified stands in Abseil's header, so the sanitizer sees what it reads; what Notify
// writes there it is told.
void Notification::Notify() {
  static const Abseil<void(Notification*)> notify("12Notification6NotifyEv");
  __tsan_release(&notified_yet_);
  notify(this);
}

void Notification::WaitForNotification() const {
  static const Abseil<void(const Notification*)> wait("12Notification19WaitForNotificationEv",
                                                      true);
  wait(this);
  static_cast<void>(HasBeenNotified());
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const Abseil<bool(const Notification*, Duration)> wait(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE", true);
  wait(this, timeout);
  return HasBeenNotified();
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static const Abseil<bool(const Notification*, Time)> wait(
      "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE", true);
  wait(this, deadline);
  return HasBeenNotified();
}

ABSL_NAMESPACE_END
}  // namespace absl

#endif
