// Cuts a model's layers into the stages of a pipeline: where measured time and memory balance, or
// where a user says. Pure functions over what layer_costs.h measures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/parallel/pipeline/timetable.h"

namespace tutti::parallel {

// What a layer costs with one micro-batch.
struct LayerCost {
  std::string name;
  double forward = 0, backward = 0;  // seconds
  int64_t parameter_bytes = 0;       // of what is trained
  int64_t buffer_bytes = 0;          // of what is not
  int64_t kept_bytes = 0;            // from the forward to the backward pass, its output included
  int64_t output_bytes = 0;          // what a stage that ends here sends on, and gets back
};

// The first layer of each stage, ascending; the first is 0.
using Cut = std::vector<size_t>;

// Memory of a rank is that of its stage's parameters, gradients and optimizer, and the kept bytes
// of as many micro-batches as the schedule has in flight.
struct MemoryPlan {
  Timetable table;                  // of as many stages as the cut has
  double states_per_parameter = 2;  // values and gradients; SGD's momentum adds 1, Adam's 2
};

struct StageCost {
  StageSeconds seconds;
  int64_t state_bytes = 0;       // parameters, gradients, optimizer, buffers
  int64_t activation_bytes = 0;  // at the worst moment of a step
  int64_t bytes() const { return state_bytes + activation_bytes; }
};
std::vector<StageCost> StagesOf(std::span<const LayerCost> layers, const Cut& cut,
                                const MemoryPlan& plan);

// Returns the cut whose slowest stage is fastest among those that no stage of which takes more than
// `most_bytes`; of equal ones that whose largest stage is smallest. Empty: there is none, or there
// are more stages than layers.
Cut BalancedCut(std::span<const LayerCost> layers, const MemoryPlan& plan, int64_t most_bytes);
// Returns the cut whose largest stage is smallest.
Cut SmallestCut(std::span<const LayerCost> layers, const MemoryPlan& plan);

// Reads a cut from the names of the layers that later stages begin with: "layer2.0,layer4.1" for
// three stages. InvalidArgument: as many names as do not fit `stages`, a name that is no layer's
// (with those that are) or is the first one's, names that do not ascend.
absl::StatusOr<Cut> ReadCut(absl::string_view names, std::span<const LayerCost> layers,
                            int64_t stages);
// Writes it as ReadCut would take it.
std::string CutText(const Cut& cut, std::span<const LayerCost> layers);

// Checks that each stage fits the memory that its rank may take, `free_bytes` by stage.
// ResourceExhausted names the stage, its layers, what it needs and what there is, and the nearest
// way that fits: another cut of as many stages, more micro-batches (`table_of` makes the schedule's
// table for other numbers; kept bytes shrink in proportion), or more stages.
struct Room {
  std::vector<int64_t> free_bytes;                                         // by stage
  Timetable (*table_of)(int64_t stages, int64_t micro_batches) = nullptr;  // the schedule's
  int64_t micro_batches = 1;
};
absl::Status CheckFits(std::span<const LayerCost> layers, const Cut& cut, const MemoryPlan& plan,
                       const Room& room);

}  // namespace tutti::parallel
