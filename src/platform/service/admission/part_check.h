// Whether the nodes of this machine can ever have the share that a job asks for. Pure.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "platform/engine/engine.h"
#include "spec/types/job.h"

namespace tutti::service {

// Checks the share of a node that the job asks for. InvalidArgument names what no node has, or how
// many nodes have such a share, and what to do. OK of whole nodes and of other computes.
absl::Status CheckNodeShare(const spec::JobSpec& job, const std::vector<engine::Node>& nodes);

}  // namespace tutti::service
