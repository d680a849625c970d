#include "runtime/train/parts.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/models/state.h"
#include "runtime/parallel/data_parallel.h"

namespace tutti::train {

absl::StatusOr<std::unique_ptr<parallel::Strategy>> MakeStrategy(
    const Recipe& recipe, const models::Model& model,
    std::unique_ptr<comm::Communicator> communicator) {
  const parallel::DataParallelOptions options{.label_smoothing = recipe.label_smoothing,
                                              .bf16 = recipe.precision == "bf16",
                                              .synchronized_batch_norm = recipe.sync_bn};
  return parallel::DataParallel::Create(model, std::move(communicator), options);
}

std::unique_ptr<Optimizer> MakeOptimizer(const Recipe& recipe, parallel::Strategy& strategy) {
  const SgdCoefficients coefficients{.momentum = recipe.momentum,
                                     .weight_decay = recipe.weight_decay,
                                     .nesterov = recipe.nesterov};
  return std::make_unique<Sgd>(strategy.buckets(), coefficients);
}

Schedule MakeSchedule(const Recipe& recipe, int64_t steps_per_epoch) {
  const auto in_steps = [&](double epochs) {
    return static_cast<int64_t>(epochs * static_cast<double>(steps_per_epoch) + 0.5);
  };
  Schedule schedule;
  schedule.kind = recipe.schedule == "step"       ? Schedule::Kind::kStep
                  : recipe.schedule == "constant" ? Schedule::Kind::kConstant
                                                  : Schedule::Kind::kCosine;
  schedule.peak = recipe.scale_lr ? ScaledToBatch(recipe.lr, recipe.batch) : recipe.lr;
  schedule.last = recipe.final_lr;
  schedule.gamma = recipe.gamma;
  schedule.warmup_steps = in_steps(recipe.warmup_epochs);
  schedule.total_steps = recipe.epochs * steps_per_epoch;
  if (recipe.max_steps > 0) {
    schedule.total_steps = std::min(schedule.total_steps, recipe.max_steps);
  }
  for (double epoch : recipe.milestones) schedule.milestones.push_back(in_steps(epoch));
  return schedule;
}

checkpoint::ModelFolder MakeModelFolder(const Recipe& recipe, const models::Model& model,
                                        const Input& input) {
  const data::Augmentation& picture = input.evaluation;
  checkpoint::ModelFolder folder{.architecture = recipe.model,
                                 .classes = input.train_images->classes(),
                                 .input = {picture.height, picture.width, picture.resize},
                                 .tensors = models::StateOf(*model)};
  std::copy_n(picture.mean, 3, folder.input.mean.begin());
  std::copy_n(picture.stddev, 3, folder.input.stddev.begin());
  return folder;
}

}  // namespace tutti::train
