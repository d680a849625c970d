// Finds the remedy for failures that are known by their words or their end. A pure function.
#pragma once

#include "absl/strings/string_view.h"
#include "base/process/child_process.h"

namespace tutti::service {

// Returns one clause for the end of a reason, from a process's last words, else from its signal or
// exit code; "" if neither is known.
absl::string_view RemedyOf(const base::ExitStatus& end, absl::string_view last_error);

}  // namespace tutti::service
