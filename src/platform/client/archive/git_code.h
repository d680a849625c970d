// Fetches the code of a job from a git repository.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "spec/command/code.h"

namespace tutti::client {

// Fetches the revision into `folder`, which does not exist, by the machine's git, and returns the
// code's folder in it. InvalidArgument with git's own words if it cannot be had; DeadlineExceeded
// if that is not known in time. Asks nobody for a password.
absl::StatusOr<std::filesystem::path> FetchGitCode(const spec::GitCode& code,
                                                   const std::filesystem::path& folder,
                                                   base::Deadline deadline);

}  // namespace tutti::client
