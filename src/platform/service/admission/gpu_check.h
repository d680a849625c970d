// Whether jobs that are made for GPUs find some. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::service {

// `has_gpus`: whether this machine's nodes have any; of other computes' nothing is known here.
// InvalidArgument has a line for each demand by name, in the job or one below it. A warning is
// added for what may do without: a size of machine, an environment or image whose name says that it
// is made for CUDA.
absl::Status CheckGpus(const spec::JobSpec& job, bool has_gpus, std::vector<std::string>& warnings);

}  // namespace tutti::service
