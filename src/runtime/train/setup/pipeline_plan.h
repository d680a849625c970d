// Plans how a model is laid over the stages of a pipeline, before it is: what the layers cost,
// where they are cut, and whether each stage fits its rank's memory.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"
#include "runtime/models/model.h"
#include "runtime/parallel/layout.h"
#include "runtime/parallel/pipeline/partition.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {

struct PipelinePlan {
  std::vector<parallel::LayerCost> layers;  // with one micro-batch, as rank 0 measured them
  parallel::Cut cut;
  parallel::MemoryPlan memory;
  std::vector<parallel::StageCost> stages;
  int64_t micro_batches = 1;  // of a replica, of so many images at most:
  int64_t micro_batch = 1;
};

// Checks what no model can change. InvalidArgument: it asks for what pipelines do not do
// (synchronized batch-norm, compression), or for --cut without one.
absl::Status CheckForPipeline(const Recipe& recipe);

// Plans it; `inputs` is one image [1, 3, H, W], and `model` the whole one, on every rank the same,
// both on the device that trains.
// InvalidArgument: the model has no layers to cut between, or --cut is none.
absl::StatusOr<PipelinePlan> PlanPipeline(const Recipe& recipe, const models::Model& model,
                                          const torch::Tensor& inputs, int64_t replicas);

// Bytes that a rank may take, of what its node's processes may.
using FreeMemoryOf = std::function<absl::StatusOr<int64_t>()>;

// Does the same by rank 0 for all ranks of the group, and checks that each stage fits the memory of
// its ranks, of which those of a node have equal parts; a GPU's is not asked. ResourceExhausted:
// see parallel::CheckFits.
absl::StatusOr<PipelinePlan> PlanTogether(const Recipe& recipe, const models::Model& model,
                                          const torch::Tensor& inputs,
                                          const parallel::Layout& layout, comm::Communicator& group,
                                          const FreeMemoryOf& free, base::Deadline deadline);

// Writes where the layers lie and what a step costs: a line for the whole and one a stage, as
// --explain and a run's first lines have it.
std::string DescribePlan(const PipelinePlan& plan);
// Writes which bytes go between ranks in a step, likewise: a line for stages, one for replicas.
std::string DescribeTraffic(const PipelinePlan& plan, int64_t replicas);

}  // namespace tutti::train
