// Decides, before a run, what its recipe leaves to the machine, to the ranks and to the run that it
// resumes.
#pragma once

#include <torch/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/parallel/layout.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

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
