// Makes the folder of a compute of type slurm, tells by its id whose it is, and finds the
// allocations that an earlier engine left in it (slurm_engine.h lists its files). The caller holds
// its lock where it reads or writes its id.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/engine/slurm/slurm_allocation.h"

namespace tutti::engine {

// The name of an allocation's folder begins with this while it is being removed.
inline constexpr absl::string_view kReleased = ".released-";

// Makes the folder, for its owner alone: logs and results on their way lie in it, and the scripts
// of jobs. One that was there is left as its owner has it. FailedPrecondition if others may write
// to it.
absl::Status MakeComputeFolder(std::filesystem::path folder);

// Returns what tells the Slurm jobs of this folder from all others, also those of another with its
// name and of one that it was copied from. FailedPrecondition for a copy that has jobs of another's
// in it.
absl::StatusOr<std::string> IdOfComputeFolder(const std::filesystem::path& folder, bool has_jobs);

// Finds what earlier engines left. One that is there and cannot be read now is an error: what Slurm
// has of it would seem to be nobody's. Folders that are still to be removed go to `released`, with
// those that an engine had begun to make when it was killed, before it could submit anything; they
// are renamed.
absl::StatusOr<std::map<std::string, SlurmAllocation>> FindAllocations(
    const std::filesystem::path& folder, absl::Duration settling,
    std::vector<std::filesystem::path>& released);

}  // namespace tutti::engine
