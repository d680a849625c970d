#include "runtime/models/networks/residual_network.h"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

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

Layer ResidualStem(const ResidualOptions& options) {
  const bool is_plain = options.stem == Stem::kPlain;
  torch::nn::Conv2d convolution(
      ConvolutionOf(3, options.width, is_plain ? 3 : 7, is_plain ? 1 : 2));
  BatchNorm norm(options.width);
  return {.name = "conv1",
          .modules = {{"conv1", convolution.ptr()}, {"bn1", norm.ptr()}},
          .forward = [convolution, norm, is_plain](const Fork& images) mutable -> Fork {
            Tensor x = norm->Activated(Convolved(convolution, images.main));
            if (!is_plain) x = MaxPool(x);
            return {x, x};
          }};
}

Layer ResidualHead(int64_t channels, int64_t classes) {
  torch::nn::Linear classifier(channels, classes);
  return {.name = "fc",
          .modules = {{"fc", classifier.ptr()}},
          .forward = [classifier](const Fork& x) mutable -> Fork {
            const Tensor mean = torch::adaptive_avg_pool2d(x.main, {1, 1}).flatten(1);
            const Tensor logits = classifier->forward(mean);
            return {logits, logits};
          }};
}

void DrawResidual(const torch::nn::Module& network, const FirstDraws& draws) {
  DrawEach(network, draws, DrawFanOut,
           [](torch::nn::LinearImpl& layer, at::Generator& g) { DrawUniform(layer, g); });
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

ResidualNetwork::ResidualNetwork(const ResidualOptions& options) {
  Append(ResidualStem(options));
  int64_t dilation = 1;
  for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
    AppendStage(options, stage, dilation);
  }
  if (options.classes > 0) Append(ResidualHead(channels_.back(), options.classes));
}

// Where a stage does not subsample, all that follows dilates by what it left out.
void ResidualNetwork::AppendStage(const ResidualOptions& options, size_t stage, int64_t& dilation) {
  const bool dilates = stage + static_cast<size_t>(options.dilated) >= options.blocks.size();
  int64_t inputs = channels_.empty() ? options.width : channels_.back();
  for (int64_t i = 0; i < options.blocks[stage]; ++i) {
    const int64_t step = stage > 0 && i == 0 ? 2 : 1;
    ResidualBlock block(options, inputs, options.width << stage, dilates ? 1 : step, dilation);
    if (dilates) dilation *= step;
    inputs = block->outputs();
    const std::string name = absl::StrCat("layer", stage + 1, ".", i);
    Append({.name = name,
            .modules = {{name, block.ptr()}},
            .forward = [block](const Fork& x) mutable { return block->forward(x); }});
  }
  ends_.push_back(size());
  channels_.push_back(inputs);
}

std::vector<Tensor> ResidualNetwork::Stages(const Tensor& images) {
  Fork x = {images, images};
  std::vector<Tensor> outputs;
  size_t first = 0;
  for (const size_t end : ends_) {
    x = Run(x, first, end);
    outputs.push_back(x.main);
    first = end;
  }
  return outputs;
}

}  // namespace tutti::models
