#include "runtime/models/residual_network.h"

#include "absl/strings/str_cat.h"
#include "runtime/models/fused.h"

namespace tutti::models {
namespace {

using torch::Tensor;
using Block = ResidualOptions::Block;
using Stem = ResidualOptions::Stem;

torch::nn::Conv2d Convolution(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(inputs, outputs, kernel)
                               .stride(stride)
                               .padding(kernel / 2)
                               .bias(false));
}

struct Layer {
  int64_t outputs, kernel, stride;
};

std::vector<Layer> LayersOf(Block block, int64_t width, int64_t stride) {
  if (block == Block::kBasic) return {{width, 3, stride}, {width, 3, 1}};
  return {{width, 1, 1}, {width, 3, stride}, {4 * width, 1, 1}};
}

// Every stride-th pixel, and zeros in the new channels.
Tensor ZeroPadded(const Tensor& x, int64_t channels, int64_t stride) {
  const Tensor sampled = x.slice(2, 0, c10::nullopt, stride).slice(3, 0, c10::nullopt, stride);
  return torch::constant_pad_nd(sampled, {0, 0, 0, 0, 0, channels - x.size(1)});
}

Tensor MaxPool(const Tensor& x) {
  if (CanFuse(x)) return FusedMaxPool(x);
  return torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
}

}  // namespace

ResidualBlockImpl::ResidualBlockImpl(const ResidualOptions& options, int64_t inputs, int64_t width,
                                     int64_t stride)
    : inputs_(inputs), outputs_(inputs), stride_(stride) {
  for (const Layer& layer : LayersOf(options.block, width, stride)) {
    const size_t i = convolutions_.size() + 1;
    convolutions_.push_back(register_module(
        absl::StrCat("conv", i), Convolution(outputs_, layer.outputs, layer.kernel, layer.stride)));
    norms_.push_back(register_module(absl::StrCat("bn", i), BatchNorm(layer.outputs)));
    outputs_ = layer.outputs;
  }
  if (options.shortcut == ResidualOptions::Shortcut::kProjection &&
      (stride != 1 || inputs != outputs_)) {
    projection_ = register_module(
        "downsample", torch::nn::Sequential(Convolution(inputs, outputs_, /*kernel=*/1, stride),
                                            BatchNorm(outputs_)));
  }
}

Tensor ResidualBlockImpl::Shortcut(Tensor x) {
  if (projection_) return projection_->forward(x);
  if (stride_ == 1 && inputs_ == outputs_) return x;
  return ZeroPadded(x, outputs_, stride_);
}

Fork ResidualBlockImpl::forward(const Fork& x) {
  Tensor y = x.main;
  const size_t last = convolutions_.size() - 1;
  for (size_t i = 0; i < last; ++i) y = norms_[i]->Activated(convolutions_[i]->forward(y));
  return norms_[last]->Joined(convolutions_[last]->forward(y), Shortcut(x.shortcut));
}

ResidualNetwork::ResidualNetwork(const ResidualOptions& options)
    : max_pool_(options.stem == Stem::kDownsampling) {
  int64_t channels = options.width;
  stem_ = register_module("conv1", options.stem == Stem::kPlain ? Convolution(3, channels, 3, 1)
                                                                : Convolution(3, channels, 7, 2));
  stem_norm_ = register_module("bn1", BatchNorm(channels));
  for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
    torch::nn::Sequential layer;
    for (int64_t i = 0; i < options.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      blocks_.push_back(ResidualBlock(options, channels, options.width << stage, stride));
      channels = blocks_.back()->outputs();
      layer->push_back(blocks_.back());
    }
    register_module(absl::StrCat("layer", stage + 1), layer);
  }
  classifier_ = register_module("fc", torch::nn::Linear(channels, options.classes));
}

Tensor ResidualNetwork::forward(Tensor images) {
  Tensor stem = stem_norm_->Activated(stem_->forward(images));
  if (max_pool_) stem = MaxPool(stem);
  Fork x = {stem, stem};
  for (ResidualBlock& block : blocks_) x = block->forward(x);
  return classifier_->forward(torch::adaptive_avg_pool2d(x.main, {1, 1}).flatten(1));
}

}  // namespace tutti::models
