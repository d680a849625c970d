// Checks that the ranks are about to train the same run. They read recipes and data on machines of
// their own, where a copy may be an older one.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/parallel/strategy.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/setup/input.h"

namespace tutti::train {

// Every rank calls it before the first step. InvalidArgument, the same on every rank, names the
// first rank whose recipe, classes, labels, boxes or names of images with masks are not rank 0's.
// Where files lie and how a machine is used (--data, --weights, --output, --resume, --tensorboard,
// --mlflow, --threads, --workers, --step-timeout) may differ.
absl::Status CheckAgreement(const Recipe& recipe, const Input& input, parallel::Strategy& strategy,
                            absl::Duration timeout);

}  // namespace tutti::train
