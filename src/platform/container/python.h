// Python interpreters for environments: those of this machine (in PATH, uv's own, pyenv's), else
// one that uv fetches. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "spec/job.h"

namespace tutti::container {

// The path of a Python of `version` ("3.9", ">=3.9,<3.12"). `folder` is that of the environments:
// what is fetched lies below it, for all of its users, and so does, for some minutes, why nothing
// could be. A fetch takes seconds, and is given up after 30. NotFound: "Python 3.9 is not on this
// machine and cannot be fetched: …". Cancelled.
absl::StatusOr<std::string> FindPython(const std::string& version,
                                       const std::filesystem::path& folder,
                                       const std::atomic<bool>& cancelled);

// Before a job queues: its environment's Python is found or fetched. One that cannot be had is a
// warning, with the line that asks for it, since the nearest is taken; Python 2 is InvalidArgument.
// What is not known within seconds is left to the launcher.
// Environments of clusters' nodes, and images that are run, are not looked at.
absl::Status CheckPython(const spec::Environment& environment, const std::filesystem::path& folder,
                         std::vector<std::string>& warnings);
absl::Status CheckPythons(const spec::JobSpec& job, const std::filesystem::path& folder,
                          std::vector<std::string>& warnings);

}  // namespace tutti::container
