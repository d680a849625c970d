// Train runs the training loop: data, step, optimizer; evaluation, checkpoints and reports in
// between. Each rank runs one. Rank 0 alone writes files and talks to the user.
//
// The run's result is a function of (recipe, data, world size, threads): same bytes every time,
// also when it was stopped and resumed. Thread-compatible.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/comm/communicator.h"
#include "runtime/tasks/metric.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/report/meter.h"
#include "runtime/train/report/mlflow_store.h"
#include "runtime/train/setup/pipeline_plan.h"

namespace tutti::train {

// What a run gets from the program that it is in; everything may be left out.
struct TrainerContext {
  std::FILE* out = nullptr;                // progress and results, on rank 0
  bool terminal = false;                   // of `out`
  std::filesystem::path metrics_file;      // beside <output>/metrics.jsonl
  MlflowTarget mlflow;                     // whose store gives way to the recipe's
  std::function<bool()> stop_wanted;       // asked after every step, by this rank for all
  std::function<void(int64_t)> step_done;  // with the number of steps done
  FreeMemoryOf free_memory = PlanContext().free_memory;  // for all ranks of this node
};

struct Outcome {
  bool stopped = false;  // on request, before the end; a checkpoint was written
  int64_t step = 0;
  std::vector<tasks::Metric> metrics;  // of the finished model
  Meter meter;                         // of this rank
};

// Joins in with `communicator` and trains to the end, or to a request to stop.
//
// NotFound: no such model, folder or checkpoint. InvalidArgument: the recipe does not fit the data
// or the ranks, or the ranks train different runs. FailedPrecondition: the output folder or the
// checkpoint is another run's. OutOfRange: the loss or a gradient is not finite; names step and
// rank or parameter. Errors of collectives name the rank that was lost (comm::LostRank).
absl::StatusOr<Outcome> Train(const Recipe& recipe,
                              std::unique_ptr<comm::Communicator> communicator,
                              const TrainerContext& context);

}  // namespace tutti::train
