// RunState is all that a run is, besides its recipe and data: what a checkpoint keeps and a resumed
// run takes up. Nothing else carries over from one step to the next; random numbers are functions
// of (seed, step), so that a resumed run is the same as one that was never interrupted, bit for
// bit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/data/dataset.h"
#include "runtime/models/model.h"
#include "runtime/parallel/strategy.h"
#include "runtime/train/optimizer/optimizer.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

constexpr double kNoneYet = -1;  // metrics are 0 to 1

struct RunState {
  models::Model model;  // what this rank holds of it
  Optimizer& optimizer;
  int64_t& step;    // steps done
  bool& evaluated;  // the state after that step
  double& best;     // the first metric of the best evaluation so far, kNoneYet before
  const data::Dataset& train_images;
  int64_t world_size;
  const Optimizer::Buckets& buckets;
  std::vector<torch::Tensor>&
      residual;          // see Strategy::SettleResidual; empty: nothing is compressed
  std::string cut = "";  // of a pipeline, as --cut has it
};

// What was taken by the run that recipe.resume goes on with, as its newest readable checkpoint
// says; empty where there is none or it does not say. What is wrong with a checkpoint is for
// BeginOrResume to tell.
struct TakenBefore {
  std::string precision;         // "fp32" or "bf16"
  std::optional<bool> winograd;  // see TakeWinograd
  std::string cut;               // of its pipeline
};
TakenBefore TakenToResume(const Recipe& recipe);

// Takes what this rank holds. Shares the tensors' memory: save it before the next step.
checkpoint::Checkpoint Capture(const RunState& run, const Recipe& recipe);

// Restores a run; FailedPrecondition says what differs when the checkpoint is not of this run:
// other network, seed, batch, number of images, classes (of which older ones say nothing) or
// optimizer. Then nothing has been changed.
absl::Status Restore(const checkpoint::Checkpoint& from, const Recipe& recipe, RunState& run);

struct Resumed {
  bool resumed = false;  // false: there is nothing to resume from, begin at the start
  std::string path;      // on rank 0
  std::vector<std::string> warnings;
};

// Rank 0 reads what recipe.resume names and every rank gets what it holds of it: other nodes may
// not see the folder. Where there is no resume, replicas get their writer's initial state.
//
// FailedPrecondition: what lies in recipe.output is not for this run to go on from or to replace.
// With another run's checkpoints beside its own, a later resume would take up the wrong one.
absl::StatusOr<Resumed> BeginOrResume(const Recipe& recipe, parallel::Strategy& strategy,
                                      RunState& run, absl::Duration timeout);

}  // namespace tutti::train
