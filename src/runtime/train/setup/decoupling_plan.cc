#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "runtime/parallel/decoupled/cut_predictor.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/optimizer/optimizers.h"
#include "runtime/train/setup/pipeline_plan.h"

namespace tutti::train {
namespace {

// What a cut's predictor takes for one batch: a guess, and what it learns.
struct PredictorCost {
  int64_t parameters = 0;
  double seconds = 0;
};

PredictorCost Measure(parallel::CutPredictor& predictor, const torch::Tensor& activation,
                      const torch::Tensor& targets) {
  constexpr int kTimes = 5;  // of which the shortest counts
  PredictorCost cost{.parameters = predictor.parameters()};
  const torch::Tensor gradient = torch::ones_like(activation);
  for (int i = 0; i < kTimes; ++i) {
    parallel::LapTimer timer;
    predictor.Guess(activation, targets);
    predictor.Learn(activation, targets, gradient);
    const double seconds = timer.Lap();
    cost.seconds = i == 0 ? seconds : std::min(cost.seconds, seconds);
  }
  return cost;
}

// Measures the predictor behind each stage but the last.
absl::StatusOr<std::vector<PredictorCost>> PredictorCosts(const Recipe& recipe,
                                                          const PipelinePlan& plan,
                                                          const models::Model& whole,
                                                          const Source& source,
                                                          const models::PredictorSpec& spec) {
  std::vector<PredictorCost> costs;
  const bool was_training = whole->is_training();
  whole->eval();
  const std::vector<models::Layer> layers = whole->Layers();
  const torch::Tensor images = source.Like(recipe.batch).inputs.at(0).to(torch::kFloat32);
  const torch::Tensor targets = torch::zeros({images.size(0)}, torch::kInt64);
  models::Fork x{images, images};
  for (size_t stage = 0; stage + 1 < plan.cut.size(); ++stage) {
    {
      torch::NoGradGuard no_grad;
      for (size_t i = plan.cut[stage]; i < plan.cut[stage + 1]; ++i) x = layers[i].forward(x);
    }
    TUTTI_ASSIGN_OR_RETURN(
        const auto predictor,
        parallel::CutPredictor::Make(spec, x.main, 0, "measured", PredictorOptimizer(recipe),
                                     recipe.parallel.decoupling.predictor_rate));
    costs.push_back(Measure(*predictor, x.main, targets));
  }
  whole->train(was_training);
  return costs;
}

}  // namespace

absl::StatusOr<models::PredictorSpec> PredictorOf(const Recipe& recipe, absl::string_view task,
                                                  int64_t classes) {
  const parallel::Decoupling& wanted = recipe.parallel.decoupling;
  const bool has_labels = task == "classification";
  if (wanted.labels == "yes" && !has_labels) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parallel: labels=yes tells predictors an image's label, and ", task,
                     " has none: leave it"));
  }
  const bool tells = has_labels && wanted.labels != "no" && wanted.predictor != "zero";
  return models::PredictorSpec{
      .kind = wanted.predictor, .width = wanted.width, .classes = tells ? classes : 0};
}

parallel::OptimizerFactory PredictorOptimizer(Recipe recipe) {
  recipe.optimizer = "adamw";
  recipe.weight_decay = 0;
  return [recipe](const parallel::Buckets& buckets, const models::Model&) {
    return MakeOptimizer(recipe, buckets);
  };
}

absl::StatusOr<std::string> DescribeDecoupling(const Recipe& recipe, const PipelinePlan& plan,
                                               const models::Model& whole, const Source& source,
                                               const models::PredictorSpec& spec) {
  const parallel::Decoupling& wanted = recipe.parallel.decoupling;
  const bool guesses = wanted.gradients == "synthetic";
  std::vector<PredictorCost> costs;
  if (guesses) {
    TUTTI_ASSIGN_OR_RETURN(costs, PredictorCosts(recipe, plan, whole, source, spec));
  }
  std::string text = absl::StrCat(
      plan.cut.size(), " stages that take batches of ", recipe.batch,
      " images one after the other, ", wanted.waiting, " under way for each stage behind",
      wanted.full == "drop" ? "; what is more is let go of, the oldest first" : "", "\n  ",
      guesses ? absl::StrCat("a stage updates at once, by the guess of a predictor (", spec.kind,
                             spec.classes > 0 ? ", told the labels)" : ")")
              : "a stage updates when the gradient of its output has come, and computes forward "
                "twice for it");
  for (size_t stage = 0; stage < plan.cut.size(); ++stage) {
    const size_t end = stage + 1 < plan.cut.size() ? plan.cut[stage + 1] : plan.layers.size();
    const parallel::StageSeconds& seconds = plan.stages[stage].seconds;
    const double own = seconds.forward + seconds.backward;
    absl::StrAppendFormat(&text, "\n  stage %d: %s to %s, %.3g ms forward and %.3g ms backward, %s",
                          stage, plan.layers[plan.cut[stage]].name, plan.layers[end - 1].name,
                          1e3 * seconds.forward, 1e3 * seconds.backward,
                          base::BinarySize(static_cast<uint64_t>(plan.stages[stage].bytes())));
    if (stage >= costs.size()) continue;
    absl::StrAppendFormat(&text, ", its predictor of %d parameters %.3g ms: %.0f %% of them",
                          costs[stage].parameters, 1e3 * costs[stage].seconds,
                          1e2 * costs[stage].seconds / own);
  }
  return text;
}

}  // namespace tutti::train
