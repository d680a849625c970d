// Whether the nodes of this machine can ever have the part that a job asks for. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "platform/engine/engine.h"
#include "spec/types/job.h"

namespace tutti::service {

// InvalidArgument names the key, what the largest node has, and what to do. OK of one that takes
// whole nodes, and of those of other computes.
absl::Status CheckPart(const spec::JobSpec& job, const std::vector<engine::Node>& nodes);

}  // namespace tutti::service
