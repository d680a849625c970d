#include "runtime/models/networks/preactivation_network.h"

#include "absl/strings/str_cat.h"
#include "runtime/models/layers/blocks.h"

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

PreactivationNetwork::PreactivationNetwork(const ResidualOptions& options) {
  int64_t channels = options.width;
  Append(ResidualStem(options));
  for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
    for (int64_t i = 0; i < options.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      PreactivationBlock block(options, channels, options.width << stage, stride,
                               /*activated=*/stage == 0 && i == 0);
      channels = block->outputs();
      const std::string name = absl::StrCat("layer", stage + 1, ".", i);
      Append({.name = name,
              .modules = {{name, block.ptr()}},
              .forward = [block](const Fork& x) mutable -> Fork {
                const Tensor y = block->forward(x.main);
                return {y, y};
              }});
    }
  }
  BatchNorm norm(channels);
  Layer head = ResidualHead(channels, options.classes);
  head.name = "norm";
  head.modules.insert(head.modules.begin(), {"norm", norm.ptr()});
  head.forward = [norm, classify = head.forward](const Fork& x) mutable {
    const Tensor activation = norm->Activated(x.main);
    return classify({activation, activation});
  };
  Append(std::move(head));
}

void PreactivationNetwork::Initialise(const FirstDraws& draws) { DrawResidual(*this, draws); }

}  // namespace tutti::models
