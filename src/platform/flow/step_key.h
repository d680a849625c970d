// Hashes all that a step's results follow from: its command, code, environment, variables, shape,
// declared outputs, and its inputs' values and contents; of an input that is a file its name too.
// What the step is called, where it stands and how it queues does not count. A pure function.
#pragma once

#include <map>
#include <string>

#include "spec/types/job.h"

namespace tutti::flow {

// Computes the key; `digests`: of the content of each input that has a path.
std::string StepKey(const spec::JobSpec& job, const std::string& snapshot,
                    const std::map<std::string, std::string>& digests);

}  // namespace tutti::flow
