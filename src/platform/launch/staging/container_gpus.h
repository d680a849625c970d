// The GPUs that the containers of a job get: the job's and no others of the node's, by podman's
// CDI. Other jobs may have those. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/launch/environment/process_environment.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns podman's option for each GPU of the job, by its name on the node: CUDA, whose numbers
// facts.gpus has, counts those alone that the process may open, so that where Slurm has given a job
// device 5 alone, that is CUDA's 0. None where podman knows no GPUs; none for a number that CUDA
// does not know. Names that are no numbers (a UUID) stay.
std::vector<std::string> GpuOptions(const NodeFacts& facts);

// Tells whether an option of the job names GPUs, which it has already: those of GpuOptions.
bool NamesGpus(absl::string_view option);

// Sets the variables of a rank whose container has the devices of GpuOptions: CUDA numbers those
// from 0 on. What a job with whole nodes sets itself stays.
void SetGpuVariables(const spec::LaunchPlan& plan, const NodeFacts& facts, Variables& variables);

}  // namespace tutti::launch
