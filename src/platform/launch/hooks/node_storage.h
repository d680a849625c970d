// What hooks that use stores need of their node.
#pragma once

#include <atomic>
#include <filesystem>

#include "absl/status/statusor.h"
#include "platform/launch/hooks/node_hook.h"

namespace tutti::launch {

// Returns the folder that launchers of the node's jobs share.
std::filesystem::path HomeOf(const spec::LaunchPlan& plan);

// Returns the program tutti-storage for this node, fetched from the service if the plan says so.
// FailedPrecondition if it is not there; Cancelled once `cancelled` is set or after
// Delivery::AbandonCode.
absl::StatusOr<std::filesystem::path> StorageProgramOf(NodeContext& node,
                                                       const std::atomic<bool>& cancelled);

}  // namespace tutti::launch
