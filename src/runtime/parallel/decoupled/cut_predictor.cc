#include "runtime/parallel/decoupled/cut_predictor.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/models/state.h"
#include "runtime/parallel/flat_model.h"

namespace tutti::parallel {
namespace {

double Dot(const torch::Tensor& one, const torch::Tensor& other) {
  return (one * other).sum().item<double>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CutPredictor>> CutPredictor::Make(
    const models::PredictorSpec& spec, const torch::Tensor& activation, uint64_t seed,
    const std::string& behind, const OptimizerFactory& optimizer, double rate) {
  std::string name =
      absl::StrCat("predictor.", behind, ".", spec.kind, "-", spec.width, "-", spec.classes);
  TUTTI_ASSIGN_OR_RETURN(models::Model predictor,
                         models::MakePredictor(spec, activation, seed, name));
  return std::unique_ptr<CutPredictor>(
      new CutPredictor(std::move(predictor), std::move(name), spec, optimizer, rate));
}

CutPredictor::CutPredictor(models::Model predictor, std::string name,
                           const models::PredictorSpec& spec, const OptimizerFactory& optimizer,
                           double rate)
    : predictor_(std::move(predictor)),
      name_(std::move(name)),
      is_auxiliary_(spec.is_auxiliary()),
      rate_(rate),
      buckets_(predictor_->parameters().empty() ? Buckets()
                                                : FlattenParameters(predictor_, 0, 0, OwnMemory)) {
  if (is_auxiliary_) scale_.fill_(1);
  if (spec.is_trained() && optimizer) optimizer_ = optimizer(buckets_, predictor_);
}

std::vector<torch::Tensor> CutPredictor::Outputs(const torch::Tensor& activation,
                                                 const torch::Tensor& targets) const {
  const bool is_double = activation.scalar_type() == torch::kFloat64;
  return predictor_->Outputs({is_double ? activation : activation.to(torch::kFloat32), targets});
}

torch::Tensor CutPredictor::Guess(const torch::Tensor& activation,
                                  const torch::Tensor& targets) const {
  torch::NoGradGuard no_grad;
  const auto samples = static_cast<double>(targets.size(0));
  return Outputs(activation, targets)[0] * (scale_.item<double>() / samples);
}

void CutPredictor::Learn(const torch::Tensor& activation, const torch::Tensor& targets,
                         const torch::Tensor& gradient) {
  constexpr double kOfTheNewest = 0.05;
  const auto samples = static_cast<double>(targets.size(0));
  const std::vector<torch::Tensor> outputs = Outputs(activation, targets);
  const torch::Tensor guess = outputs[0].detach();
  const torch::Tensor truth = gradient.to(guess.scalar_type()).mul(samples).reshape(guess.sizes());
  const double before = scale_.item<double>();
  const double of_truth = Dot(truth, truth), of_guess = before * before * Dot(guess, guess),
               of_both = before * Dot(guess, truth);
  if (of_truth > 0) {
    ++errors_;
    error_ += (of_guess - 2 * of_both + of_truth) / of_truth;
  }
  if (of_truth > 0 && of_guess > 0) {
    ++cosines_;
    cosine_ += of_both / std::sqrt(of_truth * of_guess);
  }
  if (!is_auxiliary_) {
    const double root = std::sqrt(of_truth / static_cast<double>(truth.numel()));
    scale_.fill_(before == 0 ? root : (1 - kOfTheNewest) * before + kOfTheNewest * root);
  }
  if (optimizer_ == nullptr || scale_.item<double>() == 0) return;
  for (const auto& bucket : buckets_) bucket->gradients().zero_();
  Backward(outputs, truth, samples);
  optimizer_->Step(rate_);
}

// Of the squares' sum the gradient is written down: a sum over all places and its derivative are
// passes over memory, which cost more than a linear predictor computes.
void CutPredictor::Backward(const std::vector<torch::Tensor>& outputs, const torch::Tensor& truth,
                            double samples) {
  if (is_auxiliary_) return (outputs[1] / samples).backward();
  const torch::Tensor miss = outputs[0].detach() - truth / scale_.item<double>();
  outputs[0].backward(miss.mul_(2 / samples));
}

int64_t CutPredictor::parameters() const {
  int64_t count = 0;
  for (const torch::Tensor& each : predictor_->parameters()) count += each.numel();
  return count;
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
