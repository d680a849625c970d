// FullyConvolutional is a network for semantic segmentation (Long, Shelhamer, Darrell 2015): the
// stages of a residual network, a head that classifies every position, and its logits brought to
// the images' size. Names as torchvision's fcn_resnet50: backbone.conv1, ..., classifier.0, ...,
// aux_classifier.4.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>

#include <vector>

#include "runtime/models/model.h"
#include "runtime/models/networks/residual_network.h"

namespace tutti::models {

class FcnHeadImpl : public torch::nn::Module {
 public:
  FcnHeadImpl(int64_t inputs, int64_t classes);
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::Conv2d first_{nullptr}, last_{nullptr};
  BatchNorm norm_{nullptr};
  torch::nn::Dropout dropout_{nullptr};
};
TORCH_MODULE(FcnHead);

// [N, 3, H, W] -> logits [N, classes, H, W].
class FullyConvolutional : public ModelImpl {
 public:
  // `auxiliary`: in train mode a second head classifies the last stage but one.
  FullyConvolutional(ResidualOptions backbone, int64_t classes, bool auxiliary);
  torch::Tensor forward(torch::Tensor images) override;
  std::vector<torch::Tensor> Outputs(const std::vector<torch::Tensor>& inputs) override;
  void Initialise(const FirstDraws& draws) override;

 private:
  std::shared_ptr<ResidualNetwork> backbone_;
  FcnHead head_{nullptr}, auxiliary_{nullptr};
};

}  // namespace tutti::models
