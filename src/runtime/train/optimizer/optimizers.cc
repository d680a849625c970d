#include "runtime/train/optimizer/optimizers.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/train/optimizer/adamw.h"
#include "runtime/train/optimizer/lamb.h"
#include "runtime/train/optimizer/lars.h"
#include "runtime/train/optimizer/sgd.h"

namespace tutti::train {
namespace {

using Made = std::unique_ptr<parallel::Optimizer>;
using Buckets = parallel::Buckets;

Decay DecayOf(const OptimizerOptions& o) {
  return o.decay == "weights" ? Decay::kWeights : Decay::kAll;
}

AdamCoefficients AdamOf(const OptimizerOptions& o) {
  return {.beta1 = o.betas[0],
          .beta2 = o.betas[1],
          .epsilon = o.epsilon,
          .weight_decay = o.weight_decay};
}

Made MakeSgd(const OptimizerOptions& o, const Buckets& buckets) {
  const SgdCoefficients coefficients{
      .momentum = o.momentum, .weight_decay = o.weight_decay, .nesterov = o.nesterov};
  return std::make_unique<Sgd>(buckets, coefficients, DecayOf(o));
}

Made MakeAdamW(const OptimizerOptions& o, const Buckets& buckets) {
  return std::make_unique<AdamW>(buckets, AdamOf(o), DecayOf(o));
}

Made MakeLars(const OptimizerOptions& o, const Buckets& buckets) {
  const LarsCoefficients coefficients{
      .momentum = o.momentum, .weight_decay = o.weight_decay, .trust = o.trust};
  return std::make_unique<Lars>(buckets, coefficients);
}

Made MakeLamb(const OptimizerOptions& o, const Buckets& buckets) {
  return std::make_unique<Lamb>(buckets, AdamOf(o));
}

}  // namespace

const std::vector<OptimizerEntry>& Optimizers() {
  static const std::vector<OptimizerEntry> optimizers = {
      {.name = "sgd",
       .about = "stochastic gradient descent with momentum",
       .coefficients = {"momentum", "nesterov", "decay"},
       .make = MakeSgd},
      {.name = "adamw",
       .about = "decoupled weight decay (Loshchilov & Hutter 2019), wants an --lr of about 0.001 "
                "and a --weight-decay of 0.01 to 0.1",
       .coefficients = {"betas", "epsilon", "decay"},
       .decouples = true,
       .make = MakeAdamW},
      {.name = "lars",
       .about = "sgd with a rate for each layer, for large batches (You et al. 2017)",
       .coefficients = {"momentum", "trust"},
       .make = MakeLars},
      {.name = "lamb",
       .about = "adamw with a rate for each layer, for large batches (You et al. 2020)",
       .coefficients = {"betas", "epsilon"},
       .decouples = true,
       .make = MakeLamb},
  };
  return optimizers;
}

std::vector<absl::string_view> OptimizerNames() {
  std::vector<absl::string_view> names;
  for (const OptimizerEntry& each : Optimizers()) names.push_back(each.name);
  return names;
}

const std::string& AboutOptimizers() {
  static const std::string about =
      absl::StrJoin(Optimizers(), "; ", [](std::string* text, const OptimizerEntry& each) {
        absl::StrAppend(text, each.name, ": ", each.about);
      });
  return about;
}

bool Takes(const OptimizerEntry& optimizer, absl::string_view coefficient) {
  const auto& taken = optimizer.coefficients;
  return std::find(taken.begin(), taken.end(), coefficient) != taken.end();
}

std::string NamesWhere(const std::function<bool(const OptimizerEntry&)>& holds) {
  std::vector<absl::string_view> names;
  for (const OptimizerEntry& each : Optimizers()) {
    if (holds(each)) names.push_back(each.name);
  }
  if (names.size() < 2) return absl::StrJoin(names, "");
  const absl::string_view last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", last);
}

std::unique_ptr<parallel::Optimizer> MakeOptimizer(const OptimizerOptions& options,
                                                   const parallel::Buckets& buckets) {
  const auto found =
      std::find_if(Optimizers().begin(), Optimizers().end(),
                   [&](const OptimizerEntry& each) { return each.name == options.optimizer; });
  if (found == Optimizers().end()) std::abort();
  return found->make(options, buckets);
}

}  // namespace tutti::train
