// What the detectors look at images with.
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "absl/strings/str_cat.h"
#include "runtime/models/layers/blocks.h"
#include "runtime/models/layers/initialisation.h"
#include "runtime/models/networks/residual_network.h"
#include "runtime/models/networks/single_shot_detector.h"
#include "runtime/models/networks/vgg.h"

namespace tutti::models {
namespace {

using torch::Tensor;

torch::nn::Conv2d Biased(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride = 1) {
  return torch::nn::Conv2d(ConvolutionOf(inputs, outputs, kernel, stride).bias(true));
}

torch::nn::ReLU Relu() { return torch::nn::ReLU(torch::nn::ReLUOptions(/*inplace=*/true)); }

// 1x1 to half of the outputs, then `last`, each with its ReLU.
Chain Smaller(int64_t inputs, int64_t outputs, const torch::nn::Conv2d& last) {
  Chain chain;
  chain->Append(Biased(inputs, outputs / 2, 1));
  chain->Append(Relu());
  chain->Append(last);
  chain->Append(Relu());
  return chain;
}

// Convolution layers 6 and 7 of the paper, that VGG's linear layers have become.
Chain Dilated() {
  Chain chain;
  chain->Append(torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(1).padding(1)));
  chain->Append(torch::nn::Conv2d(torch::nn::Conv2dOptions(512, 1024, 3).padding(6).dilation(6)));
  chain->Append(Relu());
  chain->Append(Biased(1024, 1024, 1));
  chain->Append(Relu());
  return chain;
}

class Vgg16Maps : public FeatureExtractor {
 public:
  Vgg16Maps() {
    AppendVggStage(features_, 3, 64, 2);
    features_->Append(HalvingPool());
    AppendVggStage(features_, 64, 128, 2);
    features_->Append(HalvingPool());
    AppendVggStage(features_, 128, 256, 3);
    features_->Append(HalvingPool(/*round_up=*/true));
    AppendVggStage(features_, 256, 512, 3);
    Chain fifth;
    fifth->Append(HalvingPool());
    AppendVggStage(fifth, 512, 512, 3);
    fifth->Append(Dilated());
    extra_ = {fifth, Smaller(1024, 512, Biased(256, 512, 3, 2)),
              Smaller(512, 256, Biased(128, 256, 3, 2)), Smaller(256, 256, Unpadded()),
              Smaller(256, 256, Unpadded())};
    scale_ = register_parameter("scale_weight", torch::full({512}, 20.0));
    register_module("features", features_);
    const auto list = register_module("extra", std::make_shared<torch::nn::Module>());
    for (size_t i = 0; i < extra_.size(); ++i) list->register_module(std::to_string(i), extra_[i]);
  }

  // The first map is normalised over its channels and scaled, as ParseNet does.
  std::vector<Tensor> Maps(Tensor x) override {
    x = features_->forward(std::move(x));
    const Tensor length = x.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
    std::vector<Tensor> maps = {scale_.view({1, -1, 1, 1}) * (x / length)};
    for (Chain& stage : extra_) maps.push_back(x = stage->forward(x));
    return maps;
  }

  // VGG's own stages are VGG's, the others Glorot's.
  void Initialise(const FirstDraws& draws) override {
    torch::nn::init::constant_(scale_, 20);
    DrawConvolutions(*features_, draws.Below("features"), DrawFanOut);
    for (size_t i = 0; i < extra_.size(); ++i) {
      const auto draw = [&](torch::nn::Conv2dImpl& layer, at::Generator& g) {
        const bool is_vgg = i == 0 && layer.options.out_channels() == 512;
        is_vgg ? DrawFanOut(layer, g) : DrawXavier(layer, g);
      };
      DrawConvolutions(*extra_[i], draws.Below(absl::StrCat("extra.", i)), draw);
    }
  }

 private:
  static torch::nn::Conv2d Unpadded() {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(128, 256, 3));
  }

  Tensor scale_;
  Chain features_;
  std::vector<Chain> extra_;
};

class ResidualMaps : public FeatureExtractor {
 public:
  ResidualMaps() {
    ResidualOptions options;
    options.blocks = {3, 3, 3};
    options.classes = 0;
    body_ = register_module("body", std::make_shared<ResidualNetwork>(options));
    const auto list = register_module("extra", std::make_shared<torch::nn::Module>());
    for (int i = 0; i < 3; ++i) {
      extra_.push_back(
          list->register_module(std::to_string(i), Smaller(64, 64, Biased(32, 64, 3, 2))));
    }
  }
  std::vector<Tensor> Maps(Tensor images) override {
    std::vector<Tensor> maps = {body_->Stages(images).back()};
    for (Chain& stage : extra_) maps.push_back(stage->forward(maps.back()));
    return maps;
  }
  void Initialise(const FirstDraws& draws) override {
    body_->Initialise(draws.Below("body"));
    for (size_t i = 0; i < extra_.size(); ++i) {
      DrawConvolutions(*extra_[i], draws.Below(absl::StrCat("extra.", i)), DrawXavier);
    }
  }

 private:
  std::shared_ptr<ResidualNetwork> body_;
  std::vector<Chain> extra_;
};

}  // namespace

// Section 3.1 of the paper, for 300 x 300: scales, steps and aspect ratios.
Model MakeSsd300(int64_t classes) {
  const std::vector<FeatureMap> maps = {
      {512, 38, 8, 0.07, 0.15, {2}},     {1024, 19, 16, 0.15, 0.33, {2, 3}},
      {512, 10, 32, 0.33, 0.51, {2, 3}}, {256, 5, 64, 0.51, 0.69, {2, 3}},
      {256, 3, 100, 0.69, 0.87, {2}},    {256, 1, 300, 0.87, 1.05, {2}}};
  return std::make_shared<SingleShotDetector>(std::make_shared<Vgg16Maps>(), maps, 300, classes);
}

Model MakeSsd64(int64_t classes) {
  const std::vector<FeatureMap> maps = {{64, 16, 4, 0.1, 0.25, {2}},
                                        {64, 8, 8, 0.25, 0.45, {2}},
                                        {64, 4, 16, 0.45, 0.7, {2}},
                                        {64, 2, 32, 0.7, 0.95, {2}}};
  return std::make_shared<SingleShotDetector>(std::make_shared<ResidualMaps>(), maps, 64, classes);
}

}  // namespace tutti::models
