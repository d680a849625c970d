// Handles keeps the objects behind the C ABI's handles: numbers, of a kind each, never given twice.
// Thread-safe, also when a process of many threads forks: the child can still ask, and hears that
// nothing is its.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"

namespace tutti::comm::capi {

// In the top byte of a handle.
enum class HandleKind : uint8_t {
  kGroup = 1,
  kSession = 2,
  kOperation = 3,
  kBuffer = 4,
  kFeedback = 5
};

class Handles {
 public:
  // Returns the process's only one. Never destroyed: threads may still hold handles when the
  // process exits.
  static Handles& Global();

  uint64_t Add(HandleKind kind, std::shared_ptr<void> object);
  // Returns what the handle is of; InvalidArgument for what is no (open) handle of this kind,
  // FailedPrecondition in a forked child.
  absl::StatusOr<std::shared_ptr<void>> Get(HandleKind kind, uint64_t handle);
  // Returns the same, and closes it.
  absl::StatusOr<std::shared_ptr<void>> Take(HandleKind kind, uint64_t handle);

 private:
  Handles();

  struct Entry {
    std::shared_ptr<void> object;
    int process;
  };
  absl::StatusOr<std::shared_ptr<void>> Find(HandleKind kind, uint64_t handle, bool close);

  std::mutex mutex_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, Entry> open_;
};

}  // namespace tutti::comm::capi
