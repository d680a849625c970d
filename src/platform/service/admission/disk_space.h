// Checks that the disk of the service's folder has room for what a job brings, before the job is
// taken; that it has any is results/disk_room.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::service {

// Checks that copies fit; ResourceExhausted if `directory`'s disk has no room for the inputs of the
// job, or of one below it, of which each of this machine's nodes gets a copy (mode download): a
// line with the place and the remedy for each such job. Takes a second at most; of nodes elsewhere
// nothing is known here.
absl::Status CheckCopiesFit(const spec::JobSpec& job, const std::filesystem::path& directory);

// An input that this machine fetches from a store, and what the store has of it; what it refers to
// outlives it.
struct InputInStore {
  const spec::JobSpec* job;
  const std::string* name;
  const spec::Input* input;  // has a place
  uint64_t bytes = 0;
};

// Checks that what they bring fits; ResourceExhausted if the disk of the cache in `directory` could
// not have the data of one job if all went that the cache keeps now, nor, where that is the disk of
// `directory` too, the copies for its nodes (mode download): a line with the place and the remedy
// for each such job. Inputs of one container may be of the same objects, so of these the largest
// counts. Where what is free is too little it looks at each file of the cache.
absl::Status CheckFetchesFit(const std::vector<InputInStore>& inputs,
                             const std::filesystem::path& directory);

}  // namespace tutti::service
