// Measures what one node does with a recipe, for a plan of several.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/bench/plan/prediction.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::bench {

struct NodeMeasurement {
  int ranks_per_node = 1;  // of which one is measured, with its share of the cores
  double cores = 1;        // that this process may use
  absl::Duration seconds = absl::Seconds(3);  // about as long, for each of what is measured
};

// Measures the step of one rank at the recipe's batch and, where it can be, a quarter of it, on
// synthetic images; then what the loader does, if the recipe names data. Takes the precision and
// the device that the recipe asks for, and sets the threads of this process. NotFound: no such
// model or data. InvalidArgument: the recipe asks for what this machine or its data do not have.
absl::StatusOr<NodeFacts> MeasureNode(const train::Recipe& recipe,
                                      const NodeMeasurement& measurement);

// Returns the bytes of the gradients of a network by its name, in fp32. NotFound: no such network.
absl::StatusOr<double> GradientBytes(const std::string& model);

}  // namespace tutti::bench
