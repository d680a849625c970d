#include "runtime/models/networks/preactivation_network.h"

#include "absl/strings/str_cat.h"
#include "runtime/models/layers/fused.h"

namespace tutti::models {

using torch::Tensor;

PreactivationBlockImpl::PreactivationBlockImpl(const ResidualOptions& options, int64_t inputs,
                                               int64_t width, int64_t stride, bool activated)
    : inputs_(inputs), outputs_(inputs), stride_(stride) {
  for (const torch::nn::Conv2dOptions& layer : BlockLayers(options, inputs, width, stride, 1)) {
    const size_t i = convolutions_.size() + 1;
    norms_.emplace_back(nullptr);
    if (i > 1 || !activated) {
      norms_.back() = register_module(absl::StrCat("bn", i), BatchNorm(outputs_));
    }
    convolutions_.push_back(register_module(absl::StrCat("conv", i), torch::nn::Conv2d(layer)));
    outputs_ = layer.out_channels();
  }
  if (options.shortcut == ResidualOptions::Shortcut::kProjection &&
      (stride != 1 || inputs != outputs_)) {
    projection_ = torch::nn::Conv2d(ConvolutionOf(inputs, outputs_, /*kernel=*/1, stride));
    register_module("downsample", Chain())->Append(projection_);
  }
}

Tensor PreactivationBlockImpl::Shortcut(const Tensor& x, const Tensor& activation) {
  if (projection_) return projection_->forward(activation);
  if (stride_ == 1 && inputs_ == outputs_) return x;
  return ZeroPadded(activation, outputs_, stride_);
}

Tensor PreactivationBlockImpl::forward(Tensor x) {
  const Tensor activation = norms_[0] ? norms_[0]->Activated(x) : x;
  Tensor y = convolutions_[0]->forward(activation);
  for (size_t i = 1; i < convolutions_.size(); ++i) {
    y = convolutions_[i]->forward(norms_[i]->Activated(y));
  }
  return y.add_(Shortcut(x, activation));
}

PreactivationNetwork::PreactivationNetwork(const ResidualOptions& options)
    : max_pool_(options.stem == ResidualOptions::Stem::kDownsampling) {
  int64_t channels = options.width;
  stem_ = register_module("conv1", torch::nn::Conv2d(StemLayer(options)));
  stem_norm_ = register_module("bn1", BatchNorm(channels));
  for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
    Chain layer;
    for (int64_t i = 0; i < options.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      blocks_.push_back(PreactivationBlock(options, channels, options.width << stage, stride,
                                           /*activated=*/blocks_.empty()));
      channels = blocks_.back()->outputs();
      layer->Append(blocks_.back());
    }
    register_module(absl::StrCat("layer", stage + 1), layer);
  }
  last_norm_ = register_module("norm", BatchNorm(channels));
  classifier_ = register_module("fc", torch::nn::Linear(channels, options.classes));
}

Tensor PreactivationNetwork::forward(Tensor images) {
  Tensor x = stem_norm_->Activated(Convolved(stem_, images));
  if (max_pool_) x = MaxPool(x);
  for (PreactivationBlock& block : blocks_) x = block->forward(x);
  x = last_norm_->Activated(x);
  return classifier_->forward(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

void PreactivationNetwork::Initialise(at::Generator generator) { DrawResidual(*this, generator); }

}  // namespace tutti::models
