// Checks, before a job queues, that the Pythons that it asks for can be had. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/deadline.h"
#include "spec/types/job.h"

namespace tutti::container {

// Finds or fetches the Pythons of a job's environment and of those below it, each version once.
// One that cannot be had is a warning, with the line that asks for it, since the nearest is taken.
// InvalidArgument has a line for each that asks for Python 2. What is not known by the deadline is
// a warning that says so, and left to the launcher; the search goes on in this process, and who
// asks for the same meanwhile joins it. Environments of clusters' nodes, and images that are run,
// are not looked at.
absl::Status CheckPython(const spec::Environment& environment, const std::filesystem::path& folder,
                         base::Deadline deadline, std::vector<std::string>& warnings);
absl::Status CheckPythons(const spec::JobSpec& job, const std::filesystem::path& folder,
                          base::Deadline deadline, std::vector<std::string>& warnings);

}  // namespace tutti::container
