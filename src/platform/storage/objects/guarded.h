// Calls what may throw, as a provider's library or a machine without memory does, and returns the
// exception as an error: who waits for the work to end is told of its end. Thread-safe.
#pragma once

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tutti::storage {

// `to_status` makes an error of what an exception says.
template <typename Work, typename ToStatus>
auto Guarded(const Work& work, const ToStatus& to_status) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    return to_status(error.what());
  }
}

template <typename Work>
auto Guarded(const Work& work) -> decltype(work()) {
  return Guarded(work, [](const char* what) {
    return absl::InternalError(absl::StrCat("tutti-storage has failed: ", what));
  });
}

}  // namespace tutti::storage
