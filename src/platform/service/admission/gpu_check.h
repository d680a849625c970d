// Checks that jobs that are made for GPUs find some. Pure; thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::service {

// Checks demands of GPUs; `gpus` returns how many each of this machine's nodes has, and is called
// where there is such a demand; of other computes' nothing is known here. InvalidArgument has a
// line for each demand by name that asks for more, in the job or one below it. Where there are none
// a warning is added for what may do without: a size of machine, an environment or image whose name
// says that it is made for CUDA.
absl::Status CheckGpus(const spec::JobSpec& job, const std::function<size_t()>& gpus,
                       std::vector<std::string>& warnings);

}  // namespace tutti::service
