// Says what of a node can be given to jobs, and which of its processors and GPUs a share of it is.
// Pure; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "platform/engine/engine.h"
#include "platform/scheduler/resources.h"
#include "platform/service/attempt/job_placement.h"
#include "spec/types/job.h"

namespace tutti::service {

scheduler::Resources RoomOf(const engine::Node& node);

// Returns what the job takes of each of its nodes; none: all.
std::optional<scheduler::Resources> NodeShareOf(const spec::JobSpec& job);

// Returns what a job has of the node; none: all of it.
std::optional<scheduler::Resources> NodeShareOf(const PlacedNode& placed);

// Gives `placed`, which is on `node`, as much of it: processors and GPUs that none of `others` on
// that node has, the first ones. Internal if there are too few.
absl::Status TakeNodeShare(const engine::Node& node, const scheduler::Resources& share,
                           const std::vector<const PlacedNode*>& others, PlacedNode& placed);

}  // namespace tutti::service
