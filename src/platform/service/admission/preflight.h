// Checks all that can be known of a job before it queues, and reports every fault of it at once.
// Thread-safe. A job of which the reader refused a part is checked in the others (spec::Reading).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::service {

// Runs the checks of all rooms that need the machine but not the service: the paths, programs,
// Pythons, images, registries, inputs, GPUs and disk space of the job and of those below it.
// InvalidArgument has each fault once, a line each; ResourceExhausted if it is the disk's alone.
// What may fail, or cannot be known from here, goes to `warnings`, of which each is kept once. All
// that asks the network does it at the same time, and ends within five seconds (a second more where
// an image may have been built already); it blocks that long.
absl::Status Preflight(const spec::JobSpec& job, const std::filesystem::path& directory,
                       std::vector<std::string>& warnings);

}  // namespace tutti::service
