// Fetches a job's code from a git repository, and finds which commit it is.
#pragma once

#include <filesystem>
#include <map>
#include <string>

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

// Returns "git_commit", "git_branch", "git_repository" (its remote "origin", without a password)
// and, where files were changed or added since, "git_dirty": "true" (or "unknown"), as far as git
// tells them by the deadline; nothing for a folder that is in no repository. Never fails: a job
// needs none.
std::map<std::string, std::string> GitOrigin(const std::filesystem::path& folder,
                                             base::Deadline deadline);

}  // namespace tutti::client
