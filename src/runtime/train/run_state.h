// What a run is besides its recipe and data: how far it has come, and its state. A checkpoint keeps
// both, a resumed run takes them up. Nothing else carries over from one step to the next; random
// numbers are functions of (seed, step), so that a resumed run is the same as one that was never
// interrupted, bit for bit.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/parallel/state_tensor.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti::train {

constexpr double kNoneYet = -1;  // metrics are 0 to 1

struct RunProgress {
  int64_t step = 0;        // steps done
  bool evaluated = false;  // the state after that step was
  double best = kNoneYet;  // the first metric of the best evaluation so far
};

// Returns all that this rank holds: the strategy's, and where it stands in the data.
parallel::State StateOf(const Parts& parts);

// Returns what a checkpoint says beside its tensors.
nlohmann::json DescribeRun(const Recipe& recipe, const Parts& parts, const RunProgress& progress);

struct Resumed {
  bool resumed = false;  // false: there is nothing to resume from, begin at the start
  std::string path;      // on rank 0
  std::vector<std::string> warnings;
};

// Rank 0 reads what recipe.resume names and every rank gets what it holds of it: other nodes may
// not see the folder. Where there is no resume, ranks that hold the same get their writer's initial
// state. What in the recipe is another than the checkpoint's and lets the run go on otherwise than
// it would have is among the warnings.
//
// FailedPrecondition: what lies in recipe.output is not for this run to go on from or to replace
// (with another run's checkpoints beside its own, a later resume would take up the wrong one); or
// what differs when the checkpoint is not of this run: other network, seed, batch, number of
// images, classes (of which older ones say nothing) or optimizer.
absl::StatusOr<Resumed> BeginOrResume(const Recipe& recipe, Parts& parts, RunProgress& progress,
                                      absl::Duration timeout);

}  // namespace tutti::train
