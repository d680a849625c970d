// Moves the tensors of a run's state between the ranks that hold them and rank 0, which alone reads
// and writes files. What a rank holds goes by the names of the whole model; of replicas the
// writer's counts (Layout::writes_state). Every rank makes the same calls.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/parallel/strategy.h"

namespace tutti::train {

// Returns what all ranks hold, on rank 0: its own tensors, and those of others without memory (on
// the device "meta": names, types and shapes). Elsewhere its own.
absl::StatusOr<checkpoint::TensorMap> Catalogue(parallel::Strategy& strategy,
                                                const checkpoint::TensorMap& own,
                                                absl::Duration timeout);

// Calls `write` on rank 0 with the tensors of all ranks, by file: own[i] goes into file i. A tensor
// of another rank comes when its turn in its file is; rank 0 holds one at a time. Files must be
// written in their order, each whole or, after an error, no further. Returns what `write` returns,
// OK on other ranks; an error of a collective on any, which names the rank that was lost.
using WriteSources = std::function<absl::Status(std::vector<checkpoint::TensorSources> files)>;
absl::Status WriteWhole(parallel::Strategy& strategy, const std::vector<checkpoint::TensorMap>& own,
                        absl::Duration timeout, const WriteSources& write);

// Copies rank 0's `whole`, which has a tensor for each name in Catalogue(own), into the `own` of
// all writers.
absl::Status ReadWhole(parallel::Strategy& strategy, const checkpoint::TensorMap& whole,
                       const checkpoint::TensorMap& own, absl::Duration timeout);

}  // namespace tutti::train
