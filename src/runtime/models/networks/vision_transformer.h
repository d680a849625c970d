// VisionTransformer is a transformer over patches of an image (Dosovitskiy et al. 2021, "An Image
// Is Worth 16x16 Words"): each patch becomes a token, a class token stands before them, a position
// is added to each, encoder layers follow, and a linear layer classifies what has become of the
// class token. No dropout. Names as torchvision's: class_token, conv_proj, encoder.pos_embedding,
// encoder.layers.encoder_layer_0.ln_1, ..., encoder.ln, heads.head.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include "runtime/models/layers/layer_norm.h"
#include "runtime/models/layers/layered_model.h"

namespace tutti::models {

struct TransformerOptions {
  int64_t image = 224, patch = 16;  // pixels a side
  int64_t width = 768, hidden = 3072, heads = 12, layers = 12;
  int64_t classes = 1000;
};

// Each token becomes a mean of what all tokens say, by how alike they are:
// softmax(Q K^T / sqrt(width / heads)) V, of each head apart.
class SelfAttentionImpl : public torch::nn::Module {
 public:
  SelfAttentionImpl(int64_t width, int64_t heads);
  torch::Tensor forward(const torch::Tensor& x);  // [N, tokens, width] -> the same

 private:
  int64_t heads_;
  torch::Tensor in_weight_, in_bias_;  // Q, K and V: [3 width, width], [3 width]
  torch::nn::Linear out_{nullptr};
};
TORCH_MODULE(SelfAttention);

// y = x + attention(norm(x)), z = y + mlp(norm(y)).
class EncoderLayerImpl : public torch::nn::Module {
 public:
  explicit EncoderLayerImpl(const TransformerOptions& options);
  torch::Tensor forward(const torch::Tensor& x);  // [N, tokens, width] -> the same

 private:
  LayerNorm first_norm_{nullptr}, second_norm_{nullptr};
  SelfAttention attention_{nullptr};
  torch::nn::Linear widen_{nullptr}, narrow_{nullptr};
};
TORCH_MODULE(EncoderLayer);

class VisionTransformer : public LayeredModel {
 public:
  explicit VisionTransformer(const TransformerOptions& options);
  // Draws as torchvision does; the first logits are zero.
  void Initialise(const FirstDraws& draws) override;
};

}  // namespace tutti::models
