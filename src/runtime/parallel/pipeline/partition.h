// Cuts a model's layers into the stages of a pipeline: where measured time and memory balance, or
// where a user says. Pure functions over what layer_costs.h measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
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
  int64_t working_bytes = 0;         // beyond those, at the worst moment of either pass
};

// The first layer of each stage, ascending; the first is 0.
using Cut = std::vector<size_t>;

// Memory of a rank is that of its stage's parameters, gradients, optimizer and buffers; for as many
// micro-batches as the schedule has in flight the kept bytes and what the stage gets from the one
// before it, which no layer of its own counts; and the working bytes of the layer that has most,
// since one layer computes at a time. Stages that wait for nobody keep what they have sent on, or
// what they have got, of each batch whose gradient is to come.
struct MemoryPlan {
  Timetable table;                  // of as many stages as the cut has
  double states_per_parameter = 2;  // values and gradients; SGD's momentum adds 1, Adam's 2
  int64_t kept_outputs = 0, kept_inputs = 0;  // of so many batches for each stage behind
};

struct StageCost {
  StageSeconds seconds;
  int64_t state_bytes = 0;       // parameters, gradients, optimizer, buffers
  int64_t activation_bytes = 0;  // at the worst moment of a step
  int64_t working_bytes = 0;     // likewise
  int64_t bytes() const { return state_bytes + activation_bytes + working_bytes; }
};
std::vector<StageCost> StagesOf(std::span<const LayerCost> layers, const Cut& cut,
                                const MemoryPlan& plan);

// Returns the cut whose slowest stage is fastest among those that no stage of which takes more than
// `most_bytes`; of equal ones that whose largest stage is smallest. Empty: there is none, or there
// are more stages than layers.
Cut BalancedCut(std::span<const LayerCost> layers, const MemoryPlan& plan, int64_t most_bytes);

// Checks that a model of so many layers has as many for stages. InvalidArgument: "resnet20 has 11
// layers and cannot be cut into 12 stages".
absl::Status CheckStages(absl::string_view model, size_t layers, int64_t stages);

// Reads a cut from the names of the layers that later stages begin with: "layer2.0,layer4.1" for
// three stages. InvalidArgument: as many names as do not fit `stages`, a name that is no layer's
// (with those that are) or is the first one's, names that do not ascend; what CheckStages finds.
absl::StatusOr<Cut> ReadCut(absl::string_view names, std::span<const LayerCost> layers,
                            int64_t stages);
// Writes it as ReadCut would take it.
std::string CutText(const Cut& cut, std::span<const LayerCost> layers);

// Checks that each stage fits the memory that its rank may take. ResourceExhausted names the stage
// that lacks most, its layers, what it needs and what there is, and the nearest way that fits:
// another cut of as many stages, twice as many micro-batches or twice that and so on, with this cut
// or another (kept bytes shrink in proportion), or more stages on ranks like the smallest.
struct Room {
  std::vector<int64_t> free_bytes;  // by stage
  // Makes the schedule's table for other numbers; null: another cut is all that is looked for.
  Timetable (*table_of)(int64_t stages, int64_t micro_batches) = nullptr;
  int64_t micro_batches = 1;
  int64_t most_micro_batches = std::numeric_limits<int64_t>::max();  // of an image each, say
};
absl::Status CheckFits(std::span<const LayerCost> layers, const Cut& cut, const MemoryPlan& plan,
                       const Room& room);

}  // namespace tutti::parallel
