#include "runtime/models/networks/residual_network.h"

#include "absl/strings/str_cat.h"
#include "runtime/models/layers/blocks.h"
#include "runtime/models/layers/fused.h"
#include "runtime/models/layers/initialisation.h"

namespace tutti::models {

using torch::Tensor;
using Block = ResidualOptions::Block;
using Stem = ResidualOptions::Stem;

std::vector<torch::nn::Conv2dOptions> BlockLayers(const ResidualOptions& options, int64_t inputs,
                                                  int64_t width, int64_t stride, int64_t dilation) {
  if (options.block == Block::kBasic) {
    return {ConvolutionOf(inputs, width, 3, stride), ConvolutionOf(width, width, 3)};
  }
  return {ConvolutionOf(inputs, width, 1, options.stride_first ? stride : 1),
          ConvolutionOf(width, width, 3, options.stride_first ? 1 : stride)
              .padding(dilation)
              .dilation(dilation),
          ConvolutionOf(width, 4 * width, 1)};
}

torch::nn::Conv2dOptions StemLayer(const ResidualOptions& options) {
  return options.stem == Stem::kPlain ? ConvolutionOf(3, options.width, 3)
                                      : ConvolutionOf(3, options.width, 7, 2);
}

void DrawResidual(const torch::nn::Module& network, at::Generator& generator) {
  DrawEach(
      network, [&](torch::nn::Conv2dImpl& layer) { DrawFanOut(layer, generator); },
      [&](torch::nn::LinearImpl& layer) { DrawUniform(layer, generator); });
}

ResidualBlockImpl::ResidualBlockImpl(const ResidualOptions& options, int64_t inputs, int64_t width,
                                     int64_t stride, int64_t dilation)
    : inputs_(inputs), outputs_(inputs), stride_(stride) {
  for (const auto& layer : BlockLayers(options, inputs, width, stride, dilation)) {
    const size_t i = convolutions_.size() + 1;
    outputs_ = layer.out_channels();
    convolutions_.push_back(register_module(absl::StrCat("conv", i), torch::nn::Conv2d(layer)));
    norms_.push_back(register_module(absl::StrCat("bn", i), BatchNorm(outputs_)));
  }
  if (options.shortcut == ResidualOptions::Shortcut::kProjection &&
      (stride != 1 || inputs != outputs_)) {
    projection_ = torch::nn::Conv2d(ConvolutionOf(inputs, outputs_, 1, stride));
    projection_norm_ = BatchNorm(outputs_);
    register_module("downsample", torch::nn::Sequential(projection_, projection_norm_));
  }
}

Tensor ResidualBlockImpl::Shortcut(const Tensor& x) const {
  if (stride_ == 1 && inputs_ == outputs_) return x;
  return ZeroPadded(x, outputs_, stride_);
}

Fork ResidualBlockImpl::forward(const Fork& x) {
  Tensor y = x.main;
  const size_t last = convolutions_.size() - 1;
  for (size_t i = 0; i < last; ++i) y = norms_[i]->Activated(convolutions_[i]->forward(y));
  y = convolutions_[last]->forward(y);
  if (!projection_) return norms_[last]->Joined(y, Shortcut(x.shortcut));
  return norms_[last]->Joined(y, *projection_norm_, projection_->forward(x.shortcut));
}

ResidualNetwork::ResidualNetwork(const ResidualOptions& options)
    : max_pool_(options.stem == Stem::kDownsampling) {
  stem_ = register_module("conv1", torch::nn::Conv2d(StemLayer(options)));
  stem_norm_ = register_module("bn1", BatchNorm(options.width));
  int64_t dilation = 1;
  for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
    AppendStage(options, stage, dilation);
  }
  if (options.classes == 0) return;
  classifier_ = register_module("fc", torch::nn::Linear(channels_.back(), options.classes));
}

// Where a stage does not subsample, all that follows dilates by what it left out.
void ResidualNetwork::AppendStage(const ResidualOptions& options, size_t stage, int64_t& dilation) {
  const bool dilates = stage + static_cast<size_t>(options.dilated) >= options.blocks.size();
  int64_t inputs = channels_.empty() ? options.width : channels_.back();
  torch::nn::Sequential layer;
  stages_.emplace_back();
  for (int64_t i = 0; i < options.blocks[stage]; ++i) {
    const int64_t step = stage > 0 && i == 0 ? 2 : 1;
    stages_.back().push_back(
        ResidualBlock(options, inputs, options.width << stage, dilates ? 1 : step, dilation));
    if (dilates) dilation *= step;
    inputs = stages_.back().back()->outputs();
    layer->push_back(stages_.back().back());
  }
  channels_.push_back(inputs);
  register_module(absl::StrCat("layer", stage + 1), layer);
}

std::vector<Tensor> ResidualNetwork::Stages(const Tensor& images) {
  Tensor stem = stem_norm_->Activated(Convolved(stem_, images));
  if (max_pool_) stem = MaxPool(stem);
  Fork x = {stem, stem};
  std::vector<Tensor> outputs;
  for (auto& stage : stages_) {
    for (ResidualBlock& block : stage) x = block->forward(x);
    outputs.push_back(x.main);
  }
  return outputs;
}

Tensor ResidualNetwork::forward(Tensor images) {
  const Tensor x = Stages(images).back();
  return classifier_->forward(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

}  // namespace tutti::models
