// Lists the optimizers that a recipe can name: flags, help, the trainer and the tests go by this
// list.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/parallel/optimizer.h"
#include "runtime/train/optimizer/optimizer_options.h"

namespace tutti::train {

struct OptimizerEntry {
  absl::string_view name;   // what --optimizer and checkpoints call it
  absl::string_view about;  // for the help of --optimizer
  // The members of OptimizerOptions that it takes, by their keys of the recipe: "momentum". The
  // help of each names it. All take the weight decay.
  std::vector<absl::string_view> coefficients;
  bool decouples = false;  // its weight decay is no part of the gradient
  std::unique_ptr<parallel::Optimizer> (*make)(const OptimizerOptions& options,
                                               const parallel::Buckets& buckets);
};

const std::vector<OptimizerEntry>& Optimizers();
std::vector<absl::string_view> OptimizerNames();
// Returns "sgd: stochastic gradient descent with momentum; adamw: ...".
const std::string& AboutOptimizers();

// Returns the optimizers for which `holds`, as in a sentence: "sgd, adamw and lars".
std::string NamesWhere(const std::function<bool(const OptimizerEntry&)>& holds);
bool Takes(const OptimizerEntry& optimizer, absl::string_view coefficient);

// `buckets` must outlive it. Aborts unless options.optimizer names one, as SetField (recipe.h)
// sees to.
std::unique_ptr<parallel::Optimizer> MakeOptimizer(const OptimizerOptions& options,
                                                   const parallel::Buckets& buckets);

}  // namespace tutti::train
