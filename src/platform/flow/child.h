// Child is what a pipeline or a sweep knows of one of its jobs when it decides what follows. Plain
// values.
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
