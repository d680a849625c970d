// Carries a planned copy out, in batches: each goes as a whole, is noted, and is not copied again
// if the command is cut off (copy_journal.h). From this machine files go up from where they lie; to
// it they come into a folder beside the target, .tutti-copy-…, and take their names once whole;
// between two stores they go by HOME/copies.
#pragma once

#include <filesystem>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/client/storage/copy_journal.h"
#include "platform/client/storage/copy_plan.h"
#include "platform/client/storage/storage_side.h"

namespace tutti::client {

struct CopyProgress {
  int64_t files = 0, of_files = 0;
  int64_t bytes = 0, of_bytes = 0;
};

struct CopyOptions {
  std::filesystem::path home;
  BatchLimits limits;
  // Others may write to the target, a folder of this machine: no link there is followed, its own
  // path has none, and who meets one gets an error (contained_target.h).
  bool is_contained = false;
  std::function<void(const CopyProgress&)> progress;  // may be empty
  std::function<void(int64_t files)> goes_on;  // so many were there of a copy that was cut off
};

// Copies the plan's items; blocks. What is noted is left out if the target still has it in its
// size. The journal is finished once all is there. Errors are those of the sides and of this
// machine's disk.
absl::Status RunCopy(StorageSide& from, StorageSide& to, CopyPlan plan, CopyJournal& journal,
                     const CopyOptions& options);

}  // namespace tutti::client
