#include "runtime/models/networks/vision_transformer.h"

#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/modules/conv.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::models {
namespace {

using torch::Tensor;

constexpr double kNormEpsilon = 1e-6;

// Sizes are left to operations, so that a trace is for batches of any size.
Tensor Embedded(const Tensor& patches, const Tensor& class_token, const Tensor& positions) {
  const Tensor tokens = patches.flatten(2).transpose(1, 2);
  const Tensor first = class_token.expand_as(tokens.narrow(1, 0, 1));
  return torch::cat({first, tokens}, 1) + positions;
}

Layer EmbeddingLayer(const TransformerOptions& o) {
  TORCH_CHECK(o.image % o.patch == 0, "patches of ", o.patch, " pixels do not fill ", o.image);
  const int64_t side = o.image / o.patch, image = o.image;
  torch::nn::Conv2d project(torch::nn::Conv2dOptions(3, o.width, o.patch).stride(o.patch));
  const Tensor token = torch::zeros({1, 1, o.width}).requires_grad_();
  const Tensor positions = torch::zeros({1, side * side + 1, o.width}).requires_grad_();
  return {.name = "conv_proj",
          .modules = {{"conv_proj", project.ptr()}},
          .parameters = {{"class_token", token}, {"encoder.pos_embedding", positions}},
          .forward = [=](const Fork& images) mutable -> Fork {
            const Tensor& x = images.main;
            TORCH_CHECK(x.size(2) == image && x.size(3) == image, "the network takes images of ",
                        image, " x ", image, " pixels, not ", x.size(3), " x ", x.size(2));
            const Tensor y = Embedded(project->forward(x), token, positions);
            return {y, y};
          }};
}

Layer HeadLayer(const TransformerOptions& o) {
  LayerNorm norm(o.width, kNormEpsilon);
  torch::nn::Linear classify(o.width, o.classes);
  return {.name = "encoder.ln",
          .modules = {{"encoder.ln", norm.ptr()}, {"heads.head", classify.ptr()}},
          .forward = [=](const Fork& x) mutable -> Fork {
            const Tensor logits = classify->forward(norm->forward(x.main.select(1, 0)));
            return {logits, logits};
          }};
}

void DrawGlorot(Tensor& weight, at::Generator& generator) {
  const double bound = std::sqrt(6.0 / static_cast<double>(weight.size(0) + weight.size(1)));
  weight.uniform_(-bound, bound, generator);
}

// What torchvision cuts off a normal distribution lies ten deviations and more away.
void DrawByName(absl::string_view name, Tensor& values, at::Generator& generator) {
  const bool is_weight = absl::EndsWith(name, "weight");
  if (name == "conv_proj.weight") {
    values.normal_(0, 1 / std::sqrt(static_cast<double>(values[0].numel())), generator);
  } else if (name == "encoder.pos_embedding") {
    values.normal_(0, 0.02, generator);
  } else if (absl::EndsWith(name, "in_proj_weight")) {
    DrawGlorot(values, generator);
  } else if (absl::StrContains(name, ".mlp.")) {
    is_weight ? DrawGlorot(values, generator) : void(values.normal_(0, 1e-6, generator));
  } else if (absl::EndsWith(name, "out_proj.weight")) {
    const double bound = 1 / std::sqrt(static_cast<double>(values.size(1)));
    values.uniform_(-bound, bound, generator);
  } else {  // layer norms, the head, the class token, other biases
    values.fill_(is_weight && values.dim() == 1 ? 1 : 0);
  }
}

}  // namespace

SelfAttentionImpl::SelfAttentionImpl(int64_t width, int64_t heads)
    : heads_(heads),
      in_weight_(register_parameter("in_proj_weight", torch::zeros({3 * width, width}))),
      in_bias_(register_parameter("in_proj_bias", torch::zeros(3 * width))),
      out_(register_module("out_proj", torch::nn::Linear(width, width))) {}

Tensor SelfAttentionImpl::forward(const Tensor& x) {
  const Tensor all = torch::linear(x, in_weight_, in_bias_).unflatten(2, {3, heads_, -1});
  const auto parts =
      all.permute({2, 0, 3, 1, 4}).unbind(0);  // each [N, heads, tokens, width/heads]
  const Tensor heads = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  return out_->forward(heads.transpose(1, 2).flatten(2));
}

EncoderLayerImpl::EncoderLayerImpl(const TransformerOptions& o) {
  first_norm_ = register_module("ln_1", LayerNorm(o.width, kNormEpsilon));
  attention_ = register_module("self_attention", SelfAttention(o.width, o.heads));
  second_norm_ = register_module("ln_2", LayerNorm(o.width, kNormEpsilon));
  const auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>());
  widen_ = mlp->register_module("0", torch::nn::Linear(o.width, o.hidden));
  narrow_ = mlp->register_module("3", torch::nn::Linear(o.hidden, o.width));
}

Tensor EncoderLayerImpl::forward(const Tensor& x) {
  const Tensor y = attention_->forward(first_norm_->forward(x)) + x;
  return y + narrow_->forward(torch::gelu(widen_->forward(second_norm_->forward(y))));
}

VisionTransformer::VisionTransformer(const TransformerOptions& options) {
  Append(EmbeddingLayer(options));
  for (int64_t i = 0; i < options.layers; ++i) {
    EncoderLayer layer(options);
    const std::string name = absl::StrCat("encoder.layers.encoder_layer_", i);
    Append({.name = name,
            .modules = {{name, layer.ptr()}},
            .forward = [layer](const Fork& x) mutable -> Fork {
              const Tensor y = layer->forward(x.main);
              return {y, y};
            }});
  }
  Append(HeadLayer(options));
}

void VisionTransformer::Initialise(const FirstDraws& draws) {
  for (auto& parameter : named_parameters()) {
    at::Generator generator = draws.For(parameter.key());
    DrawByName(parameter.key(), parameter.value(), generator);
  }
}

}  // namespace tutti::models
