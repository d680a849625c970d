// Fills the folder of an output with what its place in the store has before the job's processes
// start, so that a script goes on from a checkpoint that another job, or an attempt before, has
// left there (decision 086): outputs of the modes rw_mount and mount, which Azure ML mounts. Those
// of the other modes begin empty. Thread-safe, but for two calls for one output.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "platform/launch/data/data_cache.h"
#include "platform/launch/data/fetch_place.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/secret_masks.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns whether the output begins with what its place in a store has.
bool BeginsWithItsStore(const spec::Output& output);

struct EarlierParts {
  StorageFunction run;   // waits for a store that is away, as long as it is to be waited for
  DataCache cache;       // of the node, through which files come
  SecretValues secrets;  // the credentials of the outputs' places
};

// Copies into the output's folder the files that the store has, with the times at which it got
// them, and notes in stored/NAME.jsonl that it has them, so that none is put again unless it
// changes. A file that the attempt before has left in the folder stays if the store does not have
// what it holds. Blocks for as long as the files take. Returns what the job's user is to know:
// that these credentials may not read there, so that the output begins empty; "" if nothing. The
// error is one line, with what to do; Cancelled once `cancelled` is set.
absl::StatusOr<std::string> FetchEarlierFiles(const spec::LaunchPlan& plan, const std::string& name,
                                              const EarlierParts& parts,
                                              const std::atomic<bool>& cancelled);

// Takes out of a node's results what lies in the outputs' folders as it came from the store: the
// service would keep it once more, and another node may have written a newer file of that name.
void LeaveOutEarlierFiles(const spec::LaunchPlan& plan, Results& results);

}  // namespace tutti::launch
