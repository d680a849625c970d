// Python interpreters for environments: those of this machine (in PATH, uv's own, pyenv's), else
// one that uv fetches. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "spec/job.h"

namespace tutti::container {

// The path of a Python of `version` ("3.9", ">=3.9,<3.12"). `folder` is that of the environments:
// what is fetched lies below it, for all of its users, and so does, for ten minutes, why nothing
// could be. A fetch takes seconds, and is given up after 30. NotFound: "Python 3.9 is not on this
// machine and cannot be fetched: …". DeadlineExceeded; of a deadline too short for a fetch it is
// remembered too, and for ten minutes nobody in such haste waits again. Cancelled.
absl::StatusOr<std::string> FindPython(
    const std::string& version, const std::filesystem::path& folder,
    const std::atomic<bool>& cancelled,
    base::Deadline deadline = base::Deadline::After(absl::InfiniteDuration()));

// Before a job queues: the Pythons of its environment and of those below it are found or fetched,
// each version once. One that cannot be had is a warning, with the line that asks for it, since the
// nearest is taken. InvalidArgument has a line for each that asks for Python 2. What is not known
// by the deadline is left to the launcher. Environments of clusters' nodes, and images that are
// run, are not looked at.
absl::Status CheckPython(const spec::Environment& environment, const std::filesystem::path& folder,
                         base::Deadline deadline, std::vector<std::string>& warnings);
absl::Status CheckPythons(const spec::JobSpec& job, const std::filesystem::path& folder,
                          base::Deadline deadline, std::vector<std::string>& warnings);

}  // namespace tutti::container
