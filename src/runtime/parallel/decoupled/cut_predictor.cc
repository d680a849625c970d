#include "runtime/parallel/decoupled/cut_predictor.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/models/state.h"
#include "runtime/parallel/flat_model.h"

namespace tutti::parallel {

absl::StatusOr<std::unique_ptr<CutPredictor>> CutPredictor::Make(
    const models::PredictorSpec& spec, const torch::Tensor& activation, uint64_t seed,
    const std::string& behind, const OptimizerFactory& optimizer, double rate) {
  std::string name =
      absl::StrCat("predictor.", behind, ".", spec.kind, "-", spec.width, "-", spec.classes);
  TUTTI_ASSIGN_OR_RETURN(models::Model predictor,
                         models::MakePredictor(spec, activation, seed, name));
  return std::unique_ptr<CutPredictor>(
      new CutPredictor(std::move(predictor), std::move(name), spec.is_trained(), optimizer, rate));
}

CutPredictor::CutPredictor(models::Model predictor, std::string name, bool is_trained,
                           const OptimizerFactory& optimizer, double rate)
    : predictor_(std::move(predictor)),
      name_(std::move(name)),
      rate_(rate),
      buckets_(predictor_->parameters().empty() ? Buckets()
                                                : FlattenParameters(predictor_, 0, 0, OwnMemory)) {
  if (is_trained && optimizer) optimizer_ = optimizer(buckets_, predictor_);
}

torch::Tensor CutPredictor::Scaled(const torch::Tensor& activation,
                                   const torch::Tensor& targets) const {
  const bool is_double = activation.scalar_type() == torch::kFloat64;
  return predictor_->Outputs({is_double ? activation : activation.to(torch::kFloat32), targets})[0];
}

torch::Tensor CutPredictor::Guess(const torch::Tensor& activation,
                                  const torch::Tensor& targets) const {
  torch::NoGradGuard no_grad;
  const auto samples = static_cast<double>(targets.size(0));
  return Scaled(activation, targets) * (scale_.item<double>() / samples);
}

void CutPredictor::Learn(const torch::Tensor& activation, const torch::Tensor& targets,
                         const torch::Tensor& gradient) {
  constexpr double kOfTheNewest = 0.05;
  const auto samples = static_cast<double>(targets.size(0));
  const torch::Tensor guess = Scaled(activation, targets),
                      truth = (gradient.to(guess.scalar_type()) * samples).reshape(guess.sizes());
  const double of_truth = truth.square().sum().item<double>();
  const double before = scale_.item<double>();
  const torch::Tensor said = guess.detach() * before;
  const double of_said = said.square().sum().item<double>();
  if (of_truth > 0) {
    ++errors_;
    error_ += (said - truth).square().sum().item<double>() / of_truth;
  }
  if (of_truth > 0 && of_said > 0) {
    ++cosines_;
    cosine_ += (said * truth).sum().item<double>() / std::sqrt(of_truth * of_said);
  }
  const double root = std::sqrt(of_truth / static_cast<double>(truth.numel()));
  const double scale = before == 0 ? root : (1 - kOfTheNewest) * before + kOfTheNewest * root;
  scale_.fill_(scale);
  if (optimizer_ == nullptr || scale == 0) return;
  for (const auto& bucket : buckets_) bucket->gradients().zero_();
  ((guess - truth / scale).square().sum() / samples).backward();
  optimizer_->Step(rate_);
}

State CutPredictor::state() const {
  State own = optimizer_ == nullptr ? State() : optimizer_->state(), named;
  for (auto& [name, tensor] : models::StateOf(*predictor_)) own.push_back({name, tensor});
  own.push_back({.name = "scale", .tensor = scale_});
  for (const StateTensor& each : own) {
    named.push_back({.name = absl::StrCat(name_, ".", each.name),
                     .tensor = each.tensor,
                     .part = StateTensor::Part::kRun,
                     .may_lack = true});
  }
  return named;
}

std::vector<Figure> CutPredictor::Figures() {
  const auto mean = [](double& sum, double& count) {
    const double all = std::exchange(sum, 0), number = std::exchange(count, 0);
    return number > 0 ? all / number : 0;
  };
  return {{"predictor_error", mean(error_, errors_)},
          {"predictor_cosine", mean(cosine_, cosines_)}};
}

}  // namespace tutti::parallel
