// Adds to absl::Status what the rooms need: macros for early return, a status of errno with the
// place, a prefix on the way up.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

// Returns the status of the errno of the last failed call: "open /a/b: No space left on device".
// The code is the one of absl::ErrnoToStatus (ENOSPC: ResourceExhausted, ENOENT: NotFound, ...).
absl::Status ErrnoStatus(absl::string_view what, int error_number);
absl::Status ErrnoStatus(absl::string_view what);  // of the current errno

// Returns whether an error's message is of a disk that has no room left, or its user's quota none.
bool SpeaksOfAFullDisk(absl::string_view message);

// Returns `status` with "prefix: " before its message; code and payloads are kept. OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view prefix);

}  // namespace tutti::base

#define TUTTI_CONCAT_INNER(a, b) a##b
#define TUTTI_CONCAT(a, b) TUTTI_CONCAT_INNER(a, b)

#define TUTTI_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                       \
    if (::absl::Status tutti_status = (expression); !tutti_status.ok()) return tutti_status; \
  } while (false)

// TUTTI_ASSIGN_OR_RETURN(const int n, CountOf(x));
#define TUTTI_ASSIGN_OR_RETURN(declaration, expression) \
  TUTTI_ASSIGN_OR_RETURN_INNER(TUTTI_CONCAT(tutti_or_, __LINE__), declaration, expression)
#define TUTTI_ASSIGN_OR_RETURN_INNER(statusor, declaration, expression) \
  auto statusor = (expression);                                         \
  if (!statusor.ok()) return std::move(statusor).status();              \
  declaration = *std::move(statusor)
