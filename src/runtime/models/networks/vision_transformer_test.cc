// That the whole computes what torchvision's does is tests/training/test_torchvision.py.
// Covers: runtime/models/layers/layer_norm.cc.
#include "runtime/models/networks/vision_transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/device/autocast.h"
#include "runtime/models/networks/networks_test_support.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"

namespace tutti::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using torch::Tensor;
using TransformerState = std::map<std::string, Tensor>;

constexpr TransformerOptions kSmall = {
    .image = 8, .patch = 4, .width = 12, .hidden = 20, .heads = 3, .layers = 2, .classes = 5};

// Every parameter at random, so that each has a part in the logits.
std::shared_ptr<VisionTransformer> SmallTransformer() {
  torch::manual_seed(1);
  auto model = std::make_shared<VisionTransformer>(kSmall);
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : model->parameters()) parameter.copy_(0.3 * torch::randn_like(parameter));
  return model;
}

TEST(VisionTransformer, HasThePublishedNumberOfParameters) {
  // torchvision's model page, and Touvron et al., table 1: 5 and 22 million.
  EXPECT_EQ(CountOf(MakeNetwork("vit_b_16", 1000, std::nullopt)), 86'567'656);
  EXPECT_EQ(CountOf(MakeNetwork("vit_s_16", 1000, std::nullopt)), 22'050'664);
  EXPECT_EQ(CountOf(MakeNetwork("vit_ti_16", 1000, std::nullopt)), 5'717'416);
  EXPECT_EQ(CountOf(MakeNetwork("vit_ti_4", 10, std::nullopt)), 5'362'762);
}

TEST(VisionTransformer, HasTorchvisionsNamesInItsOrder) {
  TransformerOptions options = kSmall;
  options.layers = 1;
  std::vector<std::string> names;
  for (const auto& parameter : VisionTransformer(options).named_parameters()) {
    names.push_back(absl::StrCat(parameter.key(), " ", parameter.value().dim()));
  }
  const std::string layer = "encoder.layers.encoder_layer_0.";
  EXPECT_THAT(names,
              ElementsAre("class_token 3", "conv_proj.weight 4", "conv_proj.bias 1",
                          "encoder.pos_embedding 3", layer + "ln_1.weight 1", layer + "ln_1.bias 1",
                          layer + "self_attention.in_proj_weight 2",
                          layer + "self_attention.in_proj_bias 1",
                          layer + "self_attention.out_proj.weight 2",
                          layer + "self_attention.out_proj.bias 1", layer + "ln_2.weight 1",
                          layer + "ln_2.bias 1", layer + "mlp.0.weight 2", layer + "mlp.0.bias 1",
                          layer + "mlp.3.weight 2", layer + "mlp.3.bias 1", "encoder.ln.weight 1",
                          "encoder.ln.bias 1", "heads.head.weight 2", "heads.head.bias 1"));
}

TEST(VisionTransformer, DrawsItsFirstWeightsAsTorchvision) {
  const Model model = MakeNetwork("vit_ti_4", 10);
  const TransformerState state = StateOf(*model);
  const auto deviation = [&](const std::string& name) {
    return state.at(name).std().item<double>();
  };
  const auto most = [&](const std::string& name) {
    return state.at(name).abs().max().item<double>();
  };
  const std::string layer = "encoder.layers.encoder_layer_11.";
  EXPECT_NEAR(deviation("conv_proj.weight"), 1 / std::sqrt(3 * 4 * 4.0), 3e-3);
  EXPECT_NEAR(deviation("encoder.pos_embedding"), 0.02, 5e-4);
  const double attention = std::sqrt(6 / (192 + 3 * 192.0)), mlp = std::sqrt(6 / (192 + 768.0));
  EXPECT_NEAR(most(layer + "self_attention.in_proj_weight"), attention, 1e-4);
  EXPECT_NEAR(most(layer + "self_attention.out_proj.weight"), 1 / std::sqrt(192.0), 1e-4);
  for (const char* part : {"mlp.0", "mlp.3"}) {
    EXPECT_NEAR(most(absl::StrCat(layer, part, ".weight")), mlp, 1e-4);
    EXPECT_NEAR(deviation(absl::StrCat(layer, part, ".bias")), 1e-6, 2e-7);
  }
  for (const std::string& zero :
       {std::string("class_token"), std::string("conv_proj.bias"),
        layer + "self_attention.in_proj_bias", layer + "self_attention.out_proj.bias",
        layer + "ln_1.bias", std::string("heads.head.weight"), std::string("heads.head.bias")}) {
    EXPECT_EQ(most(zero), 0) << zero;
  }
  EXPECT_TRUE(state.at("encoder.ln.weight").eq(1).all().item<bool>());
}

// The network again, as the paper writes it (equations 1 to 4), on a state dict.
struct WrittenOut {
  TransformerState state;

  Tensor Linear(const Tensor& x, const std::string& at) const {
    return x.matmul(state.at(at + ".weight").t()) + state.at(at + ".bias");
  }
  Tensor Norm(const Tensor& x, const std::string& at) const {
    const Tensor centred = x - x.mean(-1, true);
    const Tensor deviation = (centred.square().mean(-1, true) + 1e-6).sqrt();
    return centred / deviation * state.at(at + ".weight") + state.at(at + ".bias");
  }
  Tensor Attention(const Tensor& x, const std::string& at) const {
    const Tensor all =
        x.matmul(state.at(at + ".in_proj_weight").t()) + state.at(at + ".in_proj_bias");
    const int64_t width = kSmall.width, each = width / kSmall.heads;
    std::vector<Tensor> heads;
    for (int64_t head = 0; head < kSmall.heads; ++head) {
      const auto part = [&](int64_t which) {
        return all.narrow(2, which * width + head * each, each);
      };
      const Tensor alike =
          part(0).matmul(part(1).transpose(1, 2)) / std::sqrt(static_cast<double>(each));
      heads.push_back(alike.softmax(-1).matmul(part(2)));
    }
    return Linear(torch::cat(heads, 2), at + ".out_proj");
  }
  Tensor Run(const Tensor& images) const {
    std::vector<Tensor> tokens = {state.at("class_token").expand({images.size(0), 1, -1})};
    const Tensor kernel = state.at("conv_proj.weight").flatten(1);  // [width, 3 * patch * patch]
    for (int64_t y = 0; y < kSmall.image; y += kSmall.patch) {
      for (int64_t x = 0; x < kSmall.image; x += kSmall.patch) {
        const Tensor patch = images.narrow(2, y, kSmall.patch).narrow(3, x, kSmall.patch);
        const Tensor token = patch.flatten(1).matmul(kernel.t()) + state.at("conv_proj.bias");
        tokens.push_back(token.unsqueeze(1));
      }
    }
    Tensor z = torch::cat(tokens, 1) + state.at("encoder.pos_embedding");
    for (int64_t i = 0; i < kSmall.layers; ++i) {
      const std::string at = absl::StrCat("encoder.layers.encoder_layer_", i, ".");
      z = z + Attention(Norm(z, at + "ln_1"), at + "self_attention");
      const Tensor hidden = Linear(Norm(z, at + "ln_2"), at + "mlp.0");
      const Tensor active = hidden * 0.5 * (1 + torch::erf(hidden / std::sqrt(2.0)));
      z = z + Linear(active, at + "mlp.3");
    }
    return Linear(Norm(z.select(1, 0), "encoder.ln"), "heads.head");
  }
};

TEST(VisionTransformer, ComputesWhatThePaperWrites) {
  const auto model = SmallTransformer();
  model->to(torch::kFloat64);
  const Tensor images = torch::randn({3, 3, 8, 8}, torch::kFloat64);
  const Tensor expected = WrittenOut{StateOf(*model)}.Run(images);
  EXPECT_TRUE(torch::allclose(model->forward(images), expected, 1e-10, 1e-10));
}

TEST(VisionTransformer, IsNearInBfloat16AndItsNormsStayInFloat32) {
  const auto model = SmallTransformer();
  const Tensor images = torch::randn({3, 3, 8, 8});
  const Tensor expected = model->forward(images).detach();
  {
    const device::Autocast autocast(true, torch::kCPU);
    const Tensor logits = model->forward(images);
    EXPECT_TRUE(torch::allclose(logits.to(torch::kFloat32), expected, 0.1, 0.1));
    logits.sum().backward();
  }
  const auto parameters = model->named_parameters();
  const Tensor scale = parameters["encoder.ln.weight"].detach().clone();
  model->to(torch::kBFloat16);
  EXPECT_TRUE(parameters["encoder.ln.weight"].equal(scale)) << "not rounded";
  EXPECT_EQ(parameters["heads.head.weight"].scalar_type(), torch::kBFloat16);
  const Tensor logits = model->forward(images.to(torch::kBFloat16));
  EXPECT_EQ(logits.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::allclose(logits.to(torch::kFloat32), expected, 0.1, 0.1));
}

TEST(LayerNorm, ComputesInFloat32WhateverItsInput) {
  torch::manual_seed(1);
  LayerNorm norm(64, 1e-6);
  norm->to(torch::kBFloat16);
  const Tensor x = torch::randn({4, 64}).add_(100).to(torch::kBFloat16);
  const Tensor expected = norm->forward(x.to(torch::kFloat32));
  EXPECT_EQ(expected.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(norm->forward(x).equal(expected.to(torch::kBFloat16)));
  norm->to(torch::kFloat64);
  EXPECT_EQ(norm->weight.scalar_type(), torch::kFloat64);
}

TEST(VisionTransformer, TakesImagesOfItsOwnSizeAlone) {
  const auto model = SmallTransformer();
  try {
    model->forward(torch::zeros({1, 3, 12, 8}));
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("of 8 x 8 pixels, not 8 x 12"));
  }
  EXPECT_TRUE(TakesOneSize("vit_b_16") && TakesOneSize("ssd300_vgg16"));
  EXPECT_FALSE(TakesOneSize("resnet50") || TakesOneSize("script:a.pt"));
}

TEST(VisionTransformer, GoesToTorchScriptForBatchesOfAnySize) {
  const auto model = SmallTransformer();
  const auto bytes = ToTorchScript(model, kSmall.image, kSmall.image);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const base::TemporaryDirectory folder;
  const std::string path = folder.path() / "model.pt";
  std::ofstream(path, std::ios::binary) << *bytes;
  const auto script = LoadScript(path);
  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_TRUE(CheckState(StateOf(*model), StateOf(**script)).ok());
  const torch::NoGradGuard no_grad;
  for (const int64_t count : {1, 2, 5}) {
    const Tensor images = torch::randn({count, 3, kSmall.image, kSmall.image});
    EXPECT_TRUE(torch::allclose((*script)->forward(images), model->forward(images), 1e-5, 1e-5));
  }
}

}  // namespace
}  // namespace tutti::models
