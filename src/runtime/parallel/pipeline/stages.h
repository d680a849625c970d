// What strategies have in common whose ranks hold some layers of a model each.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/stream.h"
#include "runtime/models/model.h"
#include "runtime/parallel/layout.h"
#include "runtime/parallel/mailbox.h"
#include "runtime/parallel/pipeline/partition.h"

namespace tutti::parallel {

// Checks that the model's layers can be cut so. InvalidArgument: there are none, or not in this
// way.
absl::Status CheckCut(models::ModelImpl& whole, const Layout& layout, const Cut& cut);

// Takes the layers of this rank's stage, and lets go of the others, which nobody else may hold on
// to. InvalidArgument: see CheckCut, or the stage would have nothing to train.
absl::StatusOr<models::Model> TakeStage(models::Model whole, const Layout& layout, const Cut& cut);

// Checks what a stage that reads inputs got: a layer takes what the one before it gives, one
// tensor.
absl::Status CheckOneInput(const Layout& layout, const std::vector<torch::Tensor>& inputs);

// Returns a stage's part of a prediction, of which `forward` is its own: the last one's output on
// the CPU, undefined on others. `before` and `after` are the mailboxes of activations, null where
// there is no neighbour; they are empty, and one output waits in each, no more.
absl::StatusOr<torch::Tensor> PredictByStages(
    const std::vector<torch::Tensor>& inputs, Mailbox* before, Mailbox* after,
    const std::function<torch::Tensor(const torch::Tensor&)>& forward, base::Deadline deadline);

// Returns an error as the user gets it. Neighbours of a lost rank hear of it by their mailboxes,
// others only when these leave; all ask the whole group, which knows who was the first, and call it
// by its stage.
absl::Status ByStage(const absl::Status& status, const Layout& layout, comm::Stream& ranks);

}  // namespace tutti::parallel
