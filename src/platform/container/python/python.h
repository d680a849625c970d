// Finds a Python interpreter for an environment: one of this machine (in PATH, uv's own, pyenv's),
// else one that uv fetches. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace tutti::container {

// Returns the path of a Python of `version` ("3.9", ">=3.9,<3.12"): of a range PATH's python3 where
// it fits, else the newest that does. `folder` is that of the environments: what is fetched lies
// below it, for all of its users, and so does, for ten minutes, why nothing could be. A fetch takes
// seconds, and is given up after 30. NotFound: "Python 3.9 is not on this machine and cannot be
// fetched: …", also of one that is too old for uv. Cancelled.
absl::StatusOr<std::string> FindPython(const std::string& version,
                                       const std::filesystem::path& folder,
                                       const std::atomic<bool>& cancelled);

}  // namespace tutti::container
