// Checks that the disk of the service's folder has room for what a job brings, before the job is
// taken; that it has any is results/disk_room.h.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::service {

// Checks that copies fit; ResourceExhausted if `directory`'s disk has no room for the inputs of the
// job, or of one below it, of which each of this machine's nodes gets a copy (mode download): a
// line with the place and the remedy for each such job. Takes a second at most; of nodes elsewhere
// nothing is known here.
absl::Status CheckCopiesFit(const spec::JobSpec& job, const std::filesystem::path& directory);

}  // namespace tutti::service
