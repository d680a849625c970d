#include "runtime/models/networks/gradient_predictor.h"

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/models/layers/initialisation.h"

namespace tutti::models {
namespace {

// How an activation's dimensions are meant.
struct ActivationShape {
  int64_t channels = 0;
  int64_t dimensions = 2;
  bool is_image() const { return dimensions == 4; }
};

// An affine map of the channels: a convolution of images, a linear layer else.
class ChannelMap : public torch::nn::Module {
 public:
  ChannelMap(int64_t in, int64_t out, bool is_image, int64_t kernel) {
    if (is_image) {
      convolution_ = register_module(
          "convolution",
          torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).padding(kernel / 2)));
    } else {
      linear_ = register_module("linear", torch::nn::Linear(in, out));
    }
  }
  torch::Tensor Of(const torch::Tensor& x) {
    return convolution_ ? convolution_->forward(x) : linear_->forward(x);
  }

 private:
  torch::nn::Conv2d convolution_ = nullptr;
  torch::nn::Linear linear_ = nullptr;
};

class GradientPredictor final : public ModelImpl {
 public:
  GradientPredictor(const PredictorSpec& spec, const ActivationShape& shape) : shape_(shape) {
    const bool is_linear = spec.kind == "linear";
    const int64_t width = spec.width > 0 ? spec.width : std::max<int64_t>(shape.channels / 4, 1);
    const int64_t between = is_linear ? shape.channels : width;
    first_ = register_module(
        "first",
        std::make_shared<ChannelMap>(shape.channels, between, shape.is_image(), is_linear ? 1 : 3));
    if (!is_linear) {
      second_ = register_module(
          "second", std::make_shared<ChannelMap>(width, shape.channels, shape.is_image(), 3));
    }
    if (shape.is_image()) {
      everywhere_ = register_module("everywhere", torch::nn::Linear(shape.channels, between));
    }
    if (spec.classes > 0) {
      labels_ = register_parameter("labels", torch::zeros({spec.classes, between}));
    }
  }

  void BeginAtZero() {
    for (torch::Tensor& each : (second_ == nullptr ? parameters() : second_->parameters())) {
      each.zero_();
    }
  }
  torch::Tensor forward(torch::Tensor activation) override {
    return Outputs({std::move(activation), torch::Tensor()})[0];
  }
  std::vector<torch::Tensor> Outputs(const std::vector<torch::Tensor>& inputs) override {
    const torch::Tensor& activation = inputs.at(0);
    torch::Tensor x = first_->Of(activation);
    if (everywhere_) x = x + Spread(everywhere_->forward(activation.mean({2, 3})));
    if (labels_.defined()) x = x + OfLabels(inputs.at(1));
    if (second_ != nullptr) x = second_->Of(torch::relu(x));
    return {x};
  }
  void Initialise(const FirstDraws& draws) override {
    DrawEach(
        *this, draws, [](auto& layer, at::Generator& generator) { DrawUniform(layer, generator); },
        [](auto& layer, at::Generator& generator) { DrawUniform(layer, generator); });
    at::Generator generator = draws.For("labels");
    if (labels_.defined()) labels_.uniform_(-1, 1, generator);
  }

 private:
  torch::Tensor OfLabels(const torch::Tensor& targets) const {
    const torch::Tensor terms = targets.dim() == 1
                                    ? labels_.index_select(0, targets)
                                    : targets.to(labels_.scalar_type()).matmul(labels_);
    return Spread(terms);
  }
  // To every place of a sample.
  torch::Tensor Spread(const torch::Tensor& terms) const {
    if (shape_.is_image()) return terms.unsqueeze(2).unsqueeze(3);
    return shape_.dimensions == 3 ? terms.unsqueeze(1) : terms;
  }

  const ActivationShape shape_;
  std::shared_ptr<ChannelMap> first_, second_;
  torch::nn::Linear everywhere_ = nullptr;  // of the mean over all places of an image
  torch::Tensor labels_;                    // [classes, channels behind the first layer]
};

// Its last layer is its only one.
class AuxiliaryClassifier final : public ModelImpl {
 public:
  AuxiliaryClassifier(int64_t classes, const ActivationShape& shape)
      : shape_(shape),
        classifier_(register_module("classifier", torch::nn::Linear(shape.channels, classes))) {
    for (torch::Tensor& each : parameters()) each.zero_();
  }
  torch::Tensor forward(torch::Tensor activation) override { return torch::zeros_like(activation); }
  std::vector<torch::Tensor> Outputs(const std::vector<torch::Tensor>& inputs) override {
    const torch::Tensor &activation = inputs.at(0), &targets = inputs.at(1);
    const std::vector<int64_t> places = Places();
    const torch::Tensor mean = places.empty() ? activation : activation.mean(places);
    const torch::Tensor logits = classifier_->forward(mean);
    const torch::Tensor truth =
        targets.dim() == 1 ? torch::one_hot(targets, logits.size(1)).to(logits.scalar_type())
                           : targets.to(logits.scalar_type());
    torch::Tensor gradient;
    {
      torch::NoGradGuard no_grad;
      gradient = (logits.softmax(1) * truth.sum(1, true) - truth).matmul(classifier_->weight);
      gradient = gradient /
                 (static_cast<double>(activation.numel()) / static_cast<double>(gradient.numel()));
      for (const int64_t place : places) gradient = gradient.unsqueeze(place);
    }
    return {gradient.expand_as(activation), -(logits.log_softmax(1) * truth).sum()};
  }
  void Initialise(const FirstDraws&) override {}

 private:
  std::vector<int64_t> Places() const {
    if (shape_.is_image()) return {2, 3};
    return shape_.dimensions == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>();
  }

  const ActivationShape shape_;
  torch::nn::Linear classifier_;
};

class NoGradient final : public ModelImpl {
 public:
  torch::Tensor forward(torch::Tensor activation) override { return torch::zeros_like(activation); }
};

}  // namespace

const std::vector<absl::string_view>& PredictorKinds() {
  static const auto& kinds =
      *new std::vector<absl::string_view>{"linear", "convolutions", "auxiliary", "zero", "random"};
  return kinds;
}

absl::StatusOr<Model> MakePredictor(const PredictorSpec& spec, const torch::Tensor& activation,
                                    uint64_t seed, const std::string& name) {
  const auto& kinds = PredictorKinds();
  if (std::find(kinds.begin(), kinds.end(), spec.kind) == kinds.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no predictor is called \"", spec.kind,
                                                   "\"; there are ", absl::StrJoin(kinds, ", ")));
  }
  const int64_t dimensions = activation.dim();
  if (dimensions < 2 || dimensions > 4 || !activation.is_floating_point()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no predictor fits an activation of ", dimensions,
                     " dimensions: it is to be [n, C], [n, T, C] or [n, C, H, W]"));
  }
  if (spec.kind == "zero") return std::make_shared<NoGradient>();
  const ActivationShape shape{.channels = activation.size(dimensions == 4 ? 1 : dimensions - 1),
                              .dimensions = dimensions};
  torch::NoGradGuard no_grad;
  Model predictor;
  if (spec.is_auxiliary()) {
    if (spec.classes < 1) {
      return absl::InvalidArgumentError(
          "an auxiliary classifier needs the labels of images: leave labels, or take another "
          "predictor");
    }
    predictor = std::make_shared<AuxiliaryClassifier>(spec.classes, shape);
  } else {
    const auto made = std::make_shared<GradientPredictor>(spec, shape);
    made->Initialise(FirstDraws(seed, absl::StrCat(name, ".")));
    if (spec.is_trained()) made->BeginAtZero();
    predictor = made;
  }
  if (activation.scalar_type() == torch::kFloat64) predictor->to(torch::kFloat64);
  return predictor;
}

}  // namespace tutti::models
