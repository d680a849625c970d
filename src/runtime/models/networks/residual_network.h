// ResidualNetwork is a deep residual network (He, Zhang, Ren, Sun 2015, "Deep Residual Learning for
// Image Recognition"): one core for every depth, for CIFAR (section 4.2) and ImageNet (table 1,
// with the stride on the 3x3 convolution of a bottleneck, known as v1.5). Names as torchvision's:
// conv1, bn1, layer1.0.conv1, ..., layer2.0.downsample.0, fc.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>

#include <vector>

#include "runtime/models/layers/batch_norm.h"
#include "runtime/models/layers/layered_model.h"
#include "runtime/models/model.h"

namespace tutti::models {

struct ResidualOptions {
  // kPlain: 3x3. kDownsampling: 7x7 with stride 2, then 3x3 max-pooling with stride 2.
  enum class Stem { kPlain, kDownsampling } stem = Stem::kPlain;
  // kBasic: 3x3, 3x3. kBottleneck: 1x1, 3x3, 1x1 with four times the channels.
  enum class Block { kBasic, kBottleneck } block = Block::kBasic;
  // What a shortcut is where the shape changes. kZeroPadding: subsampling and channels of zeros, no
  // parameters (the paper's option A). kProjection: 1x1 convolution and batch-norm (option B).
  enum class Shortcut { kZeroPadding, kProjection } shortcut = Shortcut::kZeroPadding;
  int64_t width = 16;                // channels of the first stage; each next one doubles them
  std::vector<int64_t> blocks = {};  // in each stage
  int64_t classes = 10;              // 0: no classifier, for what builds on the stages
  bool stride_first = false;         // of a bottleneck: on its first convolution, as in the paper
  int64_t dilated = 0;               // that many last stages dilate instead of subsampling
};

// Returns the convolutions of one block, `dilation` being that of the one that subsamples.
std::vector<torch::nn::Conv2dOptions> BlockLayers(const ResidualOptions& options, int64_t inputs,
                                                  int64_t width, int64_t stride, int64_t dilation);
// The first layer: conv1, bn1, ReLU and what pooling there is. The last one: the mean over all
// positions, then fc.
Layer ResidualStem(const ResidualOptions& options);
Layer ResidualHead(int64_t channels, int64_t classes);
// Draws as torchvision does: convolutions by their fan-out, linear layers uniform.
void DrawResidual(const torch::nn::Module& network, const FirstDraws& draws);

// y = relu(F(x) + shortcut(x)), F = conv-bn(-relu-conv-bn)*.
class ResidualBlockImpl : public torch::nn::Module {
 public:
  ResidualBlockImpl(const ResidualOptions& options, int64_t inputs, int64_t width, int64_t stride,
                    int64_t dilation = 1);

  Fork forward(const Fork& x);  // [N, inputs, H, W] -> [N, outputs(), H/stride, W/stride]
  int64_t outputs() const { return outputs_; }

 private:
  torch::Tensor Shortcut(const torch::Tensor& x) const;

  int64_t inputs_, outputs_ = 0, stride_;
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<BatchNorm> norms_;
  torch::nn::Conv2d projection_{nullptr};
  BatchNorm projection_norm_{nullptr};
};
TORCH_MODULE(ResidualBlock);

class ResidualNetwork : public LayeredModel {
 public:
  explicit ResidualNetwork(const ResidualOptions& options);
  // Returns the output of each stage.
  std::vector<torch::Tensor> Stages(const torch::Tensor& images);
  const std::vector<int64_t>& channels() const { return channels_; }  // of each stage
  void Initialise(const FirstDraws& draws) override { DrawResidual(*this, draws); }

 private:
  void AppendStage(const ResidualOptions& options, size_t stage, int64_t& dilation);

  std::vector<size_t> ends_;  // of each stage, in layers
  std::vector<int64_t> channels_;
};

}  // namespace tutti::models
