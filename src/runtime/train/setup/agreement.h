// Checks that the ranks are about to train the same run. They read recipes and data on machines of
// their own, where a copy may be an older one.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"
#include "runtime/parallel/strategy.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/setup/input.h"

namespace tutti::train {

// Every rank calls both, the first before it acts by the recipe, the second before the first step.
// InvalidArgument, the same on every rank, names the first rank whose recipe, or whose classes,
// labels, boxes or names of images with masks are not rank 0's. Where files lie and how a machine
// is used (--data, --weights, --output, --resume, --tensorboard, --mlflow, --threads, --workers,
// --step-timeout) may differ.
absl::Status CheckSameRecipe(const Recipe& recipe, comm::Communicator& group,
                             base::Deadline deadline);
absl::Status CheckSameImages(const Input& input, parallel::Strategy& strategy,
                             absl::Duration timeout);

}  // namespace tutti::train
