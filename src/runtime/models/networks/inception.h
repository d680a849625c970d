// InceptionV3 is Inception-v3 (Szegedy, Vanhoucke, Ioffe, Shlens, Wojna 2016, "Rethinking the
// Inception Architecture for Computer Vision"), with its auxiliary classifier. Names as
// torchvision's: Conv2d_1a_3x3.conv, Mixed_5b.branch1x1.bn, AuxLogits.fc, fc.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "runtime/models/layers/blocks.h"
#include "runtime/models/model.h"

namespace tutti::models {

// Branches side by side, their outputs concatenated. A branch is pooling, if any, then convolutions
// in turn, then, if any, some that all see the last one's output and are concatenated in its place.
class InceptionBlockImpl : public torch::nn::Module {
 public:
  struct Layer {
    std::string name;
    int64_t outputs, height, width, stride = 1;  // a stride of 2 goes without padding
  };
  struct Branch {
    enum class Pool { kNone, kAverage, kMaximum } pool = Pool::kNone;
    std::vector<Layer> layers, tails = {};
  };
  InceptionBlockImpl(int64_t inputs, const std::vector<Branch>& branches);
  torch::Tensor forward(torch::Tensor x);
  int64_t outputs() const { return outputs_; }

 private:
  struct Built {
    Branch::Pool pool;
    std::vector<ConvNorm> layers, tails;
  };
  Built Build(int64_t inputs, const Branch& branch);
  static torch::Tensor Run(Built& branch, torch::Tensor x);

  std::vector<Built> branches_;
  int64_t outputs_ = 0;
};
TORCH_MODULE(InceptionBlock);

class InceptionV3 : public ModelImpl {
 public:
  explicit InceptionV3(int64_t classes);
  torch::Tensor forward(torch::Tensor images) override;
  // Returns, in train mode, the logits and those of the auxiliary classifier, for images of 299 x
  // 299 or more.
  std::vector<torch::Tensor> Outputs(const std::vector<torch::Tensor>& inputs) override;
  void Initialise(const FirstDraws& draws) override;

 private:
  torch::Tensor Trunk(torch::Tensor x);  // up to where the auxiliary classifier branches off
  torch::Tensor Head(torch::Tensor x);

  std::vector<ConvNorm> stem_;
  std::vector<InceptionBlock> trunk_, head_;
  ConvNorm aux_first_{nullptr}, aux_second_{nullptr};
  torch::nn::Linear aux_classifier_{nullptr}, classifier_{nullptr};
  torch::nn::Dropout dropout_{0.5};
};

}  // namespace tutti::models
