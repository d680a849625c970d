// This header gives hooks that use stores what they need of their node.
#pragma once

#include <atomic>
#include <filesystem>

#include "absl/status/statusor.h"
#include "platform/launch/data/data_cache.h"
#include "platform/launch/data/store_wait.h"
#include "platform/launch/hooks/node_hook.h"

namespace tutti::launch {

// Returns the folder that launchers of the node's jobs share.
std::filesystem::path HomeOf(const spec::LaunchPlan& plan);

// Returns what inputs and outputs are fetched into.
DataCache CacheOf(const spec::LaunchPlan& plan);

// Returns the program tutti-storage for this node, fetched from the service if the plan says so.
// FailedPrecondition if it is not there; Cancelled once `cancelled` is set or after
// Delivery::AbandonCode.
absl::StatusOr<std::filesystem::path> StorageProgramOf(NodeContext& node,
                                                       const std::atomic<bool>& cancelled);

// Returns where the node says that it waits for a store: the job's state, and what its first
// process of this node writes to stderr. `node` outlives it.
WaitParts WaitPartsOf(NodeContext& node);

}  // namespace tutti::launch
