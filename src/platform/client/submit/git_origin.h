// Finds which commit of a git repository the code of a job is.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/deadline.h"

namespace tutti::client {

// Returns "git_commit", "git_branch", "git_repository" (its remote "origin", without a password)
// and, where files were changed or added since, "git_dirty": "true" (or "unknown"), as far as git
// tells them by the deadline; nothing for a folder that is in no repository. Never fails: a job
// needs none.
std::map<std::string, std::string> GitOrigin(const std::filesystem::path& folder,
                                             base::Deadline deadline);

}  // namespace tutti::client
