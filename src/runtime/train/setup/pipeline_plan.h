// Plans how a model is laid over the stages of a pipeline, before it is: what the layers cost,
// where they are cut, and whether each stage fits its rank's memory.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/machine/free_memory.h"
#include "runtime/comm/collective/compression/encoding.h"
#include "runtime/comm/communicator.h"
#include "runtime/models/model.h"
#include "runtime/models/networks/gradient_predictor.h"
#include "runtime/parallel/layout.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/parallel/pipeline/partition.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/setup/source.h"

namespace tutti::train {

struct PipelinePlan {
  std::vector<parallel::LayerCost> layers;  // with one micro-batch, as rank 0 measured them
  parallel::Cut cut;
  parallel::MemoryPlan memory;
  std::vector<parallel::StageCost> stages;
  int64_t micro_batches = 1;  // of a replica, of so many images at most:
  int64_t micro_batch = 1;
};

// Counts the numbers that a rank keeps for each parameter: its value, its gradient, and what the
// optimizer has.
double StatesOf(const Recipe& recipe);

// Returns how long a step computes, by the plan's costs.
double ComputedSeconds(const PipelinePlan& plan);

// Checks what no model can change. InvalidArgument: it asks for what pipelines do not do
// (synchronized batch-norm, compression), or for --cut without one.
absl::Status CheckForPipeline(const Recipe& recipe);

// Plans it, cut as `former_cut` says where the recipe does not, with what `source` gives the model,
// which is the whole one, on every rank the same, on the device that trains. InvalidArgument: the
// model has no layers to cut between, or --cut is none.
absl::StatusOr<PipelinePlan> PlanPipeline(const Recipe& recipe, const models::Model& model,
                                          const Source& source, int64_t replicas,
                                          const std::string& former_cut = "");

// Bytes that the processes of this node may still take; an error: it is not known.
using FreeMemoryOf = std::function<absl::StatusOr<int64_t>()>;

struct PlanContext {
  FreeMemoryOf free_memory = [] { return base::FreeMemory(); };
  std::string former_cut;  // on rank 0: taken if it makes as many stages, and --cut says nothing
};

// Does the same by rank 0 for all ranks of the group, all of which hold the whole model. Checks
// that the stages on each node fit its memory, unless the recipe says not to. ResourceExhausted:
// see parallel::CheckFits.
absl::StatusOr<PipelinePlan> PlanTogether(const Recipe& recipe, const models::Model& model,
                                          const Source& source, const parallel::Layout& layout,
                                          comm::Communicator& group, const PlanContext& context,
                                          base::Deadline deadline);

// Writes where the layers lie and what a step costs: a line for the whole and one a stage, as
// --explain and a run's first lines have it.
std::string DescribePlan(const PipelinePlan& plan);
// Writes which bytes go between ranks in a step, likewise: a line for stages, one for replicas.
std::string DescribeTraffic(const PipelinePlan& plan, int64_t replicas);

// Writes how ranks that train by themselves hear of each other: a line on the way and one on the
// memory of a rank, and where `step_seconds` is known, the time that a rank takes to compute a
// step, one on the bytes of an hour. Empty where ranks meet in every step.
std::string DescribeExchange(const Recipe& recipe, int64_t parameters,
                             const parallel::Layout& layout, double step_seconds = 0);

// Returns what predicts gradients at each cut, for a task and so many classes. InvalidArgument: it
// is to hear labels, and the task has none.
absl::StatusOr<models::PredictorSpec> PredictorOf(const Recipe& recipe, absl::string_view task,
                                                  int64_t classes);
// Makes what predictors learn by: AdamW without decay, whatever the model's optimizer is.
parallel::OptimizerFactory PredictorOptimizer(Recipe recipe);
// Writes how stages go on that wait for nobody: two lines, and one a stage with what its predictor
// takes, which is measured here. Errors: see models::MakePredictor.
absl::StatusOr<std::string> DescribeDecoupling(const Recipe& recipe, const PipelinePlan& plan,
                                               const models::Model& whole, const Source& source,
                                               const models::PredictorSpec& spec);

// Returns how what is called "bf16" goes between ranks; none: as it is.
std::optional<comm::Encoding> EncodingOf(const std::string& name);

}  // namespace tutti::train
