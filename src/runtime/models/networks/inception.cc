#include "runtime/models/networks/inception.h"

#include <torch/nn/modules/conv.h>

#include <array>
#include <map>

#include "runtime/models/layers/blocks.h"
#include "runtime/models/layers/initialisation.h"

namespace tutti::models {
namespace {

using torch::Tensor;
using Branch = InceptionBlockImpl::Branch;
using Pool = Branch::Pool;

ConvNorm InceptionLayer(const torch::nn::Conv2dOptions& convolution) {
  return ConvNorm(convolution,
                  ConvNormImpl::Options{.epsilon = 1e-3, .convolution = "conv", .norm = "bn"});
}

// Figures 5, 6 and 7 of the paper, and the two that make the grid smaller.
std::vector<Branch> BlockA(int64_t pooled) {
  return {
      {Pool::kNone, {{"branch1x1", 64, 1, 1}}},
      {Pool::kNone, {{"branch5x5_1", 48, 1, 1}, {"branch5x5_2", 64, 5, 5}}},
      {Pool::kNone,
       {{"branch3x3dbl_1", 64, 1, 1}, {"branch3x3dbl_2", 96, 3, 3}, {"branch3x3dbl_3", 96, 3, 3}}},
      {Pool::kAverage, {{"branch_pool", pooled, 1, 1}}}};
}

std::vector<Branch> BlockB() {
  return {{Pool::kNone, {{"branch3x3", 384, 3, 3, 2}}},
          {Pool::kNone,
           {{"branch3x3dbl_1", 64, 1, 1},
            {"branch3x3dbl_2", 96, 3, 3},
            {"branch3x3dbl_3", 96, 3, 3, 2}}},
          {Pool::kMaximum, {}}};
}

std::vector<Branch> BlockC(int64_t narrow) {
  return {
      {Pool::kNone, {{"branch1x1", 192, 1, 1}}},
      {Pool::kNone,
       {{"branch7x7_1", narrow, 1, 1}, {"branch7x7_2", narrow, 1, 7}, {"branch7x7_3", 192, 7, 1}}},
      {Pool::kNone,
       {{"branch7x7dbl_1", narrow, 1, 1},
        {"branch7x7dbl_2", narrow, 7, 1},
        {"branch7x7dbl_3", narrow, 1, 7},
        {"branch7x7dbl_4", narrow, 7, 1},
        {"branch7x7dbl_5", 192, 1, 7}}},
      {Pool::kAverage, {{"branch_pool", 192, 1, 1}}}};
}

std::vector<Branch> BlockD() {
  return {{Pool::kNone, {{"branch3x3_1", 192, 1, 1}, {"branch3x3_2", 320, 3, 3, 2}}},
          {Pool::kNone,
           {{"branch7x7x3_1", 192, 1, 1},
            {"branch7x7x3_2", 192, 1, 7},
            {"branch7x7x3_3", 192, 7, 1},
            {"branch7x7x3_4", 192, 3, 3, 2}}},
          {Pool::kMaximum, {}}};
}

std::vector<Branch> BlockE() {
  return {{Pool::kNone, {{"branch1x1", 320, 1, 1}}},
          {Pool::kNone,
           {{"branch3x3_1", 384, 1, 1}},
           {{"branch3x3_2a", 384, 1, 3}, {"branch3x3_2b", 384, 3, 1}}},
          {Pool::kNone,
           {{"branch3x3dbl_1", 448, 1, 1}, {"branch3x3dbl_2", 384, 3, 3}},
           {{"branch3x3dbl_3a", 384, 1, 3}, {"branch3x3dbl_3b", 384, 3, 1}}},
          {Pool::kAverage, {{"branch_pool", 192, 1, 1}}}};
}

}  // namespace

InceptionBlockImpl::InceptionBlockImpl(int64_t inputs, const std::vector<Branch>& branches) {
  for (const Branch& branch : branches) branches_.push_back(Build(inputs, branch));
}

InceptionBlockImpl::Built InceptionBlockImpl::Build(int64_t inputs, const Branch& branch) {
  Built built{branch.pool, {}, {}};
  const auto make = [&](const Layer& layer) {
    torch::nn::Conv2dOptions options(inputs, layer.outputs, {layer.height, layer.width});
    options.stride(layer.stride).bias(false);
    if (layer.stride == 1) options.padding({layer.height / 2, layer.width / 2});
    return register_module(layer.name, InceptionLayer(options));
  };
  for (const Layer& layer : branch.layers) {
    built.layers.push_back(make(layer));
    inputs = layer.outputs;
  }
  for (const Layer& layer : branch.tails) {
    built.tails.push_back(make(layer));
    outputs_ += layer.outputs;
  }
  if (branch.tails.empty()) outputs_ += inputs;
  return built;
}

Tensor InceptionBlockImpl::Run(Built& branch, Tensor x) {
  if (branch.pool == Pool::kAverage) {
    x = torch::avg_pool2d(x, {3, 3}, /*stride=*/{1, 1}, /*padding=*/{1, 1});
  }
  if (branch.pool == Pool::kMaximum) x = MaxPool(x, /*padding=*/0);
  for (ConvNorm& layer : branch.layers) x = layer->forward(x);
  if (branch.tails.empty()) return x;
  std::vector<Tensor> parts;
  for (ConvNorm& tail : branch.tails) parts.push_back(tail->forward(x));
  return torch::cat(parts, 1);
}

Tensor InceptionBlockImpl::forward(Tensor x) {
  std::vector<Tensor> parts;
  for (Built& branch : branches_) parts.push_back(Run(branch, x));
  return torch::cat(parts, 1);
}

InceptionV3::InceptionV3(int64_t classes) {
  const auto stem = [this](const char* name, const torch::nn::Conv2dOptions& convolution) {
    stem_.push_back(register_module(name, InceptionLayer(convolution)));
  };
  stem("Conv2d_1a_3x3", ConvolutionOf(3, 32, 3, 2).padding(0));
  stem("Conv2d_2a_3x3", ConvolutionOf(32, 32, 3).padding(0));
  stem("Conv2d_2b_3x3", ConvolutionOf(32, 64, 3));
  stem("Conv2d_3b_1x1", ConvolutionOf(64, 80, 1));
  stem("Conv2d_4a_3x3", ConvolutionOf(80, 192, 3).padding(0));
  int64_t channels = 192;
  const auto append = [&](std::vector<InceptionBlock>& to, const char* name,
                          const std::vector<Branch>& branches) {
    to.push_back(register_module(name, InceptionBlock(channels, branches)));
    channels = to.back()->outputs();
  };
  append(trunk_, "Mixed_5b", BlockA(32));
  append(trunk_, "Mixed_5c", BlockA(64));
  append(trunk_, "Mixed_5d", BlockA(64));
  append(trunk_, "Mixed_6a", BlockB());
  append(trunk_, "Mixed_6b", BlockC(128));
  append(trunk_, "Mixed_6c", BlockC(160));
  append(trunk_, "Mixed_6d", BlockC(160));
  append(trunk_, "Mixed_6e", BlockC(192));
  const auto aux = register_module("AuxLogits", std::make_shared<torch::nn::Module>());
  aux_first_ = aux->register_module("conv0", InceptionLayer(ConvolutionOf(channels, 128, 1)));
  aux_second_ =
      aux->register_module("conv1", InceptionLayer(ConvolutionOf(128, 768, 5).padding(0)));
  aux_classifier_ = aux->register_module("fc", torch::nn::Linear(768, classes));
  append(head_, "Mixed_7a", BlockD());
  append(head_, "Mixed_7b", BlockE());
  append(head_, "Mixed_7c", BlockE());
  register_module("dropout", dropout_);
  classifier_ = register_module("fc", torch::nn::Linear(channels, classes));
}

Tensor InceptionV3::Trunk(Tensor x) {
  for (size_t i = 0; i < stem_.size(); ++i) {
    x = stem_[i]->forward(x);
    const bool pooled = i == 2 || i + 1 == stem_.size();
    if (pooled) x = MaxPool(x, /*padding=*/0);
  }
  for (InceptionBlock& block : trunk_) x = block->forward(x);
  return x;
}

Tensor InceptionV3::Head(Tensor x) {
  for (InceptionBlock& block : head_) x = block->forward(x);
  x = dropout_->forward(torch::adaptive_avg_pool2d(x, {1, 1}));
  return classifier_->forward(x.flatten(1));
}

Tensor InceptionV3::forward(Tensor images) { return Head(Trunk(std::move(images))); }

std::vector<Tensor> InceptionV3::Outputs(const std::vector<Tensor>& inputs) {
  const Tensor trunk = Trunk(inputs.at(0));
  if (!is_training()) return {Head(trunk)};
  Tensor aux = torch::avg_pool2d(trunk, {5, 5}, /*stride=*/{3, 3});
  aux = aux_second_->forward(aux_first_->forward(aux));
  aux = aux_classifier_->forward(torch::adaptive_avg_pool2d(aux, {1, 1}).flatten(1));
  return {Head(trunk), aux};
}

// A normal distribution that torchvision cuts off at 20 deviations, which none of its draws
// reaches.
void InceptionV3::Initialise(const FirstDraws& draws) {
  DrawEach(
      *this, draws,
      [](torch::nn::Conv2dImpl& layer, at::Generator& g) { layer.weight.normal_(0, 0.1, g); },
      [&](torch::nn::LinearImpl& layer, at::Generator& g) {
        DrawUniform(layer, g);  // the bias stays
        const double deviation = &layer == aux_classifier_.get() ? 0.001 : 0.1;
        layer.weight.normal_(0, deviation, g);
      });
}

}  // namespace tutti::models
