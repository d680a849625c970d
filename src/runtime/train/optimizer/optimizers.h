// The optimizers that a recipe can name: the one list of them, which flags, help, the trainer and
// the tests go by.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/train/optimizer/optimizer.h"

namespace tutti::train {

struct Recipe;

struct OptimizerEntry {
  absl::string_view name;   // what --optimizer and checkpoints call it
  absl::string_view about;  // for the help of --optimizer
  // Of the recipe's coefficients.
  std::unique_ptr<Optimizer> (*make)(const Recipe& recipe, const Optimizer::Buckets& buckets);
};

const std::vector<OptimizerEntry>& Optimizers();
std::vector<absl::string_view> OptimizerNames();
// "sgd: stochastic gradient descent with momentum; adamw: ...".
const std::string& AboutOptimizers();

// `buckets` must outlive it. Aborts unless recipe.optimizer names one, as SetField (recipe.h)
// sees to.
std::unique_ptr<Optimizer> MakeOptimizer(const Recipe& recipe, const Optimizer::Buckets& buckets);

}  // namespace tutti::train
