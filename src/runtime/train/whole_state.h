// Moves a run's state between the ranks that hold it and rank 0, which alone reads and writes
// files. Every rank makes the same calls, with what it holds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/parallel/strategy.h"

namespace tutti::train {

// What all writers hold, by name: types and shapes of the whole tensors, without memory (on the
// device "meta").
struct Catalogue {
  checkpoint::TensorMap model, run;  // by StateTensor::Part
  std::map<std::string, bool> may_lack;
};

// Returns it, on rank 0; elsewhere none.
absl::StatusOr<Catalogue> CatalogueOf(parallel::Strategy& strategy, const parallel::State& own,
                                      absl::Duration timeout);

// What a checkpoint has, by StateTensor::Part.
struct WholeSources {
  checkpoint::TensorSources model, run;
};

// Calls `write` on rank 0 with the tensors of all ranks. A tensor, or a part of one, of another
// rank comes when its turn in its file is; rank 0 holds one at a time. The model must be written
// before the run, each whole or, after an error, no further. Returns what `write` returns, OK on
// other ranks; an error of a collective on any, which names the rank that was lost.
using WriteSources = std::function<absl::Status(WholeSources sources)>;
absl::Status WriteWhole(parallel::Strategy& strategy, const parallel::State& own,
                        absl::Duration timeout, const WriteSources& write);

// Copies what rank 0 has of both into the tensors of their writers; what it has not stays.
absl::Status ReadWhole(parallel::Strategy& strategy, const checkpoint::TensorMap& model,
                       const checkpoint::TensorMap& run, const parallel::State& own,
                       absl::Duration timeout);

}  // namespace tutti::train
