#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "runtime/parallel/lap.h"
#include "runtime/train/setup/pipeline_plan.h"

namespace tutti::train {
namespace {

// What a cut's predictor takes for one batch: a guess, and the gradients that it learns by.
struct PredictorCost {
  int64_t parameters = 0;
  double seconds = 0;
};

PredictorCost Measure(const models::Model& predictor, bool learns, const torch::Tensor& activation,
                      const torch::Tensor& targets) {
  constexpr int kTimes = 3;  // of which the shortest counts
  PredictorCost cost;
  for (const torch::Tensor& each : predictor->parameters()) cost.parameters += each.numel();
  for (int i = 0; i < kTimes; ++i) {
    parallel::LapTimer timer;
    torch::Tensor guess;
    {
      torch::NoGradGuard no_grad;
      guess = predictor->Outputs({activation, targets})[0];
    }
    if (learns) {
      const torch::Tensor learnt = predictor->Outputs({activation, targets})[0];
      torch::autograd::grad({(learnt - activation).square().sum()}, predictor->parameters());
    }
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
    TUTTI_ASSIGN_OR_RETURN(const models::Model predictor,
                           models::MakePredictor(spec, x.main, 0, "measured"));
    costs.push_back(Measure(predictor, spec.is_trained(), x.main, targets));
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
  const bool tells = has_labels && wanted.labels != "no";
  return models::PredictorSpec{
      .kind = wanted.predictor, .width = wanted.width, .classes = tells ? classes : 0};
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
    absl::StrAppendFormat(&text, "\n  stage %d: %s to %s, %.3g ms forward and %.3g ms backward",
                          stage, plan.layers[plan.cut[stage]].name, plan.layers[end - 1].name,
                          1e3 * seconds.forward, 1e3 * seconds.backward);
    if (stage >= costs.size()) continue;
    absl::StrAppendFormat(&text, ", its predictor of %d parameters %.3g ms: %.0f %% of them",
                          costs[stage].parameters, 1e3 * costs[stage].seconds,
                          1e2 * costs[stage].seconds / own);
  }
  return text;
}

}  // namespace tutti::train
