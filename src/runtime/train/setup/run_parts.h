// Makes the parts of a run as its recipe describes them.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/comm/communicator.h"
#include "runtime/models/model.h"
#include "runtime/parallel/strategy.h"
#include "runtime/tasks/task.h"
#include "runtime/train/optimizer/schedule.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/report/run_report.h"
#include "runtime/train/setup/input.h"
#include "runtime/train/setup/pipeline_plan.h"
#include "runtime/train/setup/source.h"

namespace tutti::train {

struct Parts {
  Input input;
  std::unique_ptr<Source> train, test;  // of the input; the targets of `test` are annotations
  std::shared_ptr<const tasks::Task> task;
  std::unique_ptr<parallel::Strategy> strategy;
  Schedule schedule;
  std::string beginning;   // which weights are the recipe's --weights; empty: all begin at random
  int64_t parameters = 0;  // of the whole model
  std::string plan;        // how the model lies on the ranks, in words; empty: each has all of it
  std::string cut;         // where, as --cut has it
};

// What a pipeline is made with.
struct PipelineContext {
  std::function<void(const parallel::Action& action, double seconds)> on_pass;
  PlanContext plan;
};

// Makes the parts. NotFound: no such model or folder. InvalidArgument: the recipe does not fit the
// data, the ranks or the device (device::Open), or its precision is still "auto" (precision.h).
// ResourceExhausted: a stage of the pipeline does not fit its rank's memory. Communicates where
// there is a pipeline, whose ranks agree on where it is cut.
absl::StatusOr<Parts> MakeParts(const Recipe& recipe,
                                std::unique_ptr<comm::Communicator> communicator,
                                torch::Device device = torch::kCPU,
                                const PipelineContext& context = {});

// Says, without starting it, how a recipe lies on ranks: the mesh, the memory of a rank, the bytes
// that go between ranks in a step, and how long stages wait. What it says of time and memory is
// measured here, on one rank of it. `world_size` 0: as many ranks as the mesh has. Errors as those
// of MakeParts.
absl::StatusOr<std::string> Explain(Recipe recipe, int world_size);

// Returns what a report tells of them.
RunFacts FactsOf(const Parts& parts);

// Makes a strategy of ranks that each hold the whole model, with the recipe's optimizer; without a
// task it is for classification, as the recipe has it. `last_step` is that of the run, 0 if it is
// not known.
absl::StatusOr<std::unique_ptr<parallel::Strategy>> MakeStrategy(
    const Recipe& recipe, const models::Model& model,
    std::unique_ptr<comm::Communicator> communicator, torch::Device device = torch::kCPU,
    std::shared_ptr<const tasks::Task> task = nullptr, int64_t last_step = 0);

Schedule MakeSchedule(const Recipe& recipe, int64_t steps_per_epoch);

// Returns what scoring needs of the finished model, without its tensors and its TorchScript.
checkpoint::ModelFolder MakeModelFolder(const Recipe& recipe, const Parts& parts);
// Tells whether the model is to be written as TorchScript too. By itself not where it lies on
// several ranks, since one of them needs room for all of it then.
bool WantsTorchScript(const Recipe& recipe, const Parts& parts);
// Returns it; `tensors` are the whole model's. Empty, with a warning, where it cannot be: no reason
// to lose the run's result.
std::string TorchScriptOf(const Recipe& recipe, const Parts& parts,
                          const checkpoint::TensorMap& tensors);

}  // namespace tutti::train
