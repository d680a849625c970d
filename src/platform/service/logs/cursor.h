// Cursor marks where a follower of a job stands: the last state change and the last line that it
// was told.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/logs/job_logs.h"

namespace tutti::service {

struct Cursor {
  int64_t event = 0;  // sequence of the last event; 0: none
  LogPosition position;
};

// Returns "17-204-33".
std::string ToString(const Cursor& cursor);
// Reads a cursor; "" is the beginning. InvalidArgument for what ToString never makes.
absl::StatusOr<Cursor> CursorFromString(absl::string_view text);

}  // namespace tutti::service
