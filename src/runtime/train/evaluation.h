// Evaluate measures how good the model is on images that it has not seen.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/parallel/strategy.h"
#include "runtime/tasks/task.h"
#include "runtime/train/setup/source.h"

namespace tutti::train {

struct Evaluation {
  std::vector<tasks::Metric> metrics;  // of the task, the first of which tells the better model
  double loss = 0;                     // mean over its units, without label smoothing
  int64_t images = 0;
};

struct EvaluationOptions {
  // Also evaluates the mean of the outputs (of classification: logits) for an image and its mirror
  // image: the task's metrics once more, as "top1_mirrored", after the plain ones.
  bool mirrored = false;
  absl::Duration timeout = absl::InfiniteDuration();  // of each wait
};

// Evaluates one epoch of `source`, whose targets are annotations and of which each rank takes its
// part; the metrics are those of one process.
absl::StatusOr<Evaluation> Evaluate(const tasks::Task& task, parallel::Strategy& strategy,
                                    Source& source, const EvaluationOptions& options);

}  // namespace tutti::train
