// Tells whether the results that a step has kept are still those it ended with: jobs that take them
// as an input, other than as a download, get the folder itself, and some can write to it.
// Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace tutti::service {

// Notes in a job's folder how its outputs are now; of a job without a folder nothing.
absl::Status StampResults(const std::filesystem::path& job_folder);

// Returns whether the results are as they were stamped; false also where they have not been.
bool ResultsAreAsStamped(const std::filesystem::path& job_folder);

}  // namespace tutti::service
