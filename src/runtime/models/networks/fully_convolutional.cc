#include "runtime/models/networks/fully_convolutional.h"

#include <torch/nn/modules/linear.h>

#include "runtime/models/layers/blocks.h"
#include "runtime/models/layers/initialisation.h"

namespace tutti::models {
namespace {

using torch::Tensor;

// Bilinear, with the corners' pixels as areas.
Tensor Enlarged(const Tensor& logits, const Tensor& images) {
  return torch::upsample_bilinear2d(logits, {images.size(2), images.size(3)},
                                    /*align_corners=*/false);
}

}  // namespace

FcnHeadImpl::FcnHeadImpl(int64_t inputs, int64_t classes) {
  const int64_t hidden = inputs / 4;
  first_ = register_module("0", torch::nn::Conv2d(ConvolutionOf(inputs, hidden, 3)));
  norm_ = register_module("1", BatchNorm(hidden));
  dropout_ = register_module("3", torch::nn::Dropout(0.1));
  last_ = register_module("4", torch::nn::Conv2d(ConvolutionOf(hidden, classes, 1).bias(true)));
}

Tensor FcnHeadImpl::forward(Tensor x) {
  x = norm_->Activated(first_->forward(std::move(x)));
  return last_->forward(dropout_->forward(x));
}

FullyConvolutional::FullyConvolutional(ResidualOptions backbone, int64_t classes, bool auxiliary) {
  backbone.classes = 0;
  backbone_ = register_module("backbone", std::make_shared<ResidualNetwork>(backbone));
  const std::vector<int64_t>& channels = backbone_->channels();
  head_ = register_module("classifier", FcnHead(channels.back(), classes));
  if (!auxiliary) return;
  auxiliary_ = register_module("aux_classifier", FcnHead(channels[channels.size() - 2], classes));
}

Tensor FullyConvolutional::forward(Tensor images) {
  return Enlarged(head_->forward(backbone_->Stages(images).back()), images);
}

std::vector<Tensor> FullyConvolutional::Outputs(const std::vector<Tensor>& inputs) {
  const Tensor& images = inputs.at(0);
  if (!is_training() || !auxiliary_) return {forward(images)};
  const std::vector<Tensor> stages = backbone_->Stages(images);
  return {Enlarged(head_->forward(stages.back()), images),
          Enlarged(auxiliary_->forward(stages[stages.size() - 2]), images)};
}

void FullyConvolutional::Initialise(const FirstDraws& draws) {
  backbone_->Initialise(draws.Below("backbone"));
  const auto uniform = [](torch::nn::Conv2dImpl& layer, at::Generator& g) {
    DrawUniform(layer, g);
  };
  DrawConvolutions(*head_, draws.Below("classifier"), uniform);
  if (auxiliary_) DrawConvolutions(*auxiliary_, draws.Below("aux_classifier"), uniform);
}

}  // namespace tutti::models
