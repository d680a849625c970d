// What a parent's decision sees of a child, and what it may decide. Plain values.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace tutti::flow {

enum class ChildState { kActive, kCompleted, kFailed, kCanceled };

struct Child {
  ChildState state = ChildState::kActive;
  std::string reason;  // of its last event, without notes
  absl::Time ended = absl::InfiniteFuture();
  bool reused = false;
  bool queued = false;  // active, and not begun yet
};

enum class Outcome { kNone, kCompleted, kFailed, kCanceled };

}  // namespace tutti::flow
