#include "runtime/comm/capi/handles.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::comm::capi {
namespace {

const char* NameOf(HandleKind kind) {
  switch (kind) {
    case HandleKind::kGroup:
      return "group";
    case HandleKind::kSession:
      return "session";
    case HandleKind::kOperation:
      return "operation";
    case HandleKind::kBuffer:
      return "buffer";
    case HandleKind::kFeedback:
      return "feedback";
  }
  return "";
}

}  // namespace

// A child in which another thread of its parent's held the mutex would wait for it for ever.
Handles::Handles() {
  ::pthread_atfork([] { Global().mutex_.lock(); }, [] { Global().mutex_.unlock(); },
                   [] { Global().mutex_.unlock(); });
}

Handles& Handles::Global() {
  static Handles* const handles = new Handles();
  return *handles;
}

uint64_t Handles::Add(HandleKind kind, std::shared_ptr<void> object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t handle = static_cast<uint64_t>(kind) << 56 | next_++;
  open_[handle] = {std::move(object), ::getpid()};
  return handle;
}

absl::StatusOr<std::shared_ptr<void>> Handles::Find(HandleKind kind, uint64_t handle, bool close) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = open_.find(handle);
  if (found == open_.end() || handle >> 56 != static_cast<uint64_t>(kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat(handle, " is no open handle of a ", NameOf(kind)));
  }
  if (found->second.process != ::getpid()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the ", NameOf(kind), " belongs to the process that this one was forked from"));
  }
  std::shared_ptr<void> object = found->second.object;
  if (close) open_.erase(found);
  return object;
}

absl::StatusOr<std::shared_ptr<void>> Handles::Get(HandleKind kind, uint64_t handle) {
  return Find(kind, handle, false);
}
absl::StatusOr<std::shared_ptr<void>> Handles::Take(HandleKind kind, uint64_t handle) {
  return Find(kind, handle, true);
}

}  // namespace tutti::comm::capi
