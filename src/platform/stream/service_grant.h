// Asks the service what opens a datastore for its user, outside of a job: the program `tutti`,
// which knows where the service is and proves who asks, prints what it grants (`tutti storage
// grant`). Thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/storage/storage_json.h"

namespace tutti::stream {

// Returns the program beside this process's own, else what PATH has of that name.
std::filesystem::path ClientProgram();

// Runs the program and waits for it. InvalidArgument: the service gives nothing, with what it says,
// and what a job does instead; Unavailable: it cannot be reached, or not in time. The credentials
// go by a pipe alone.
absl::StatusOr<storage::Grant> AskForGrant(const std::string& address,
                                           const std::filesystem::path& program,
                                           base::Deadline deadline);

}  // namespace tutti::stream
