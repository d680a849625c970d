// Decides, before a run, what its recipe leaves to the machine, to the ranks and to the run that it
// resumes, which it finds.
#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/comm/communicator.h"
#include "runtime/parallel/layout.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

// Loads the checkpoint that recipe.resume names. Errors are those of CheckpointFolder.
absl::StatusOr<checkpoint::NewestCheckpoint> FindToResume(const Recipe& recipe);

// Returns what the recipe in a checkpoint's state says of a field; empty: nothing.
std::string SaidBy(const nlohmann::json& state, const char* field);

struct Resolved {
  Recipe recipe;                 // for so many ranks, with a precision and with products
  std::string precision_reason;  // how it came by its precision; empty: it was named
  std::string former_cut;        // where the run that it resumes cut the model; on rank 0
};

// Every rank of the group calls it, with the recipe as it was read, for where it stands among the
// run's; it prepares the machine (prepare_machine.h). Errors are those of TakePrecision and
// TakeWinograd.
absl::StatusOr<Resolved> Resolve(const Recipe& asked, const parallel::Layout& layout,
                                 torch::Device device, comm::Communicator& group);

}  // namespace tutti::train
