// Says what differs between the code of two jobs, by git.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"

namespace tutti::client {

struct CodeDifference {
  std::vector<std::string> files;  // "train.py +3 -1", "weights.bin (binary)"
  std::string patch;               // as `git diff --stat --patch` prints it
};

// Compares the folders `before` and `now` of `folder`, by whose names the patch calls them.
// FailedPrecondition where this machine has no git.
absl::StatusOr<CodeDifference> CompareCode(const std::filesystem::path& folder,
                                           const std::string& before, const std::string& now,
                                           base::Deadline deadline);

}  // namespace tutti::client
