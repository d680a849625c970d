// Whether registries have the images of a job, asked before it queues. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/job.h"

namespace tutti::container {

// Asks for the images that are not on this machine, for a few seconds in all. InvalidArgument, with
// the place in the job file, if its registry says that it does not have the job's own; of a step's,
// which another step may push, a warning is added. Whoever does not answer, or asks for a login,
// may have it; jobs of clusters are not looked at.
absl::Status CheckRegistries(const spec::JobSpec& job, std::vector<std::string>& warnings);

}  // namespace tutti::container
