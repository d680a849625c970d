// Networks beside the plain residual ones: sizes, first weights, shapes of outputs. That they
// compute what torchvision's do is tests/training/test_torchvision.py.
// Covers: single_shot_detector.cc, preactivation_network.cc, mobile_networks.cc,
// fully_convolutional.cc, inception.cc, detector_backbones.cc, registry.cc, feature_classifier.cc,
// multilayer_perceptron.cc, runtime/models/layers/blocks.cc, runtime/models/script_model.cc,
// runtime/models/script_export.cc, runtime/models/model.h.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/models/networks/networks_test_support.h"
#include "runtime/models/networks/preactivation_network.h"
#include "runtime/models/networks/single_shot_detector.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"

namespace tutti::models {
namespace {

using testing::HasSubstr;
using torch::Tensor;
using NetworkState = std::map<std::string, Tensor>;

TEST(Networks, HaveThePublishedNumberOfParameters) {
  // torchvision's model pages; of MobileNetV1 what its authors' checkpoints hold.
  EXPECT_EQ(CountOf(MakeNetwork("inception_v3", 1000, std::nullopt)), 27'161'264);
  EXPECT_EQ(CountOf(MakeNetwork("mobilenet_v2", 1000, std::nullopt)), 3'504'872);
  EXPECT_EQ(CountOf(MakeNetwork("mobilenet_v1", 1000, std::nullopt)), 4'231'976);
  EXPECT_EQ(CountOf(MakeNetwork("fcn_resnet50_aux", 21, std::nullopt)), 35'322'218);
  EXPECT_EQ(CountOf(MakeNetwork("ssd300_vgg16", 90, std::nullopt)),
            35'641'826);  // and the background
  // As the first version; the stride is elsewhere.
  EXPECT_EQ(CountOf(MakeNetwork("resnet50v1", 1000, std::nullopt)), 25'557'032);
}

TEST(Networks, DrawTheirFirstWeightsAsTorchvision) {
  NetworkState inception = StateOf(*MakeNetwork("inception_v3", 10));
  EXPECT_NEAR(inception["Mixed_7c.branch1x1.conv.weight"].std().item<double>(), 0.1, 1e-3);
  EXPECT_NEAR(inception["AuxLogits.fc.weight"].std().item<double>(), 0.001, 1e-4);
  NetworkState mobile = StateOf(*MakeNetwork("mobilenet_v2", 10));
  EXPECT_NEAR(mobile["classifier.1.weight"].std().item<double>(), 0.01, 1e-3);
  EXPECT_TRUE(mobile["classifier.1.bias"].eq(0).all().item<bool>());
  // Depthwise: fan_out is 9 a group times the channels.
  EXPECT_NEAR(mobile["features.17.conv.1.0.weight"].std().item<double>(),
              std::sqrt(2.0 / (960 * 9)), 1e-3);
  NetworkState fcn = StateOf(*MakeNetwork("fcn_resnet20", 3));
  EXPECT_LE(fcn["classifier.0.weight"].abs().max().item<double>(), 1 / std::sqrt(64 * 9.0));
  NetworkState ssd = StateOf(*MakeNetwork("ssd64_resnet20", 2));
  EXPECT_TRUE(ssd["head.regression_head.module_list.0.bias"].eq(0).all().item<bool>());
}

struct Expected {
  std::string name;
  int64_t side;
  std::vector<int64_t> output;
};

TEST(Networks, GiveLogitsOfImagesPixelsOrBoxesAndTrainInBfloat16) {
  at::set_num_threads(1);  // several wait for each other on a processor's cycles
  for (const Expected& e : {Expected{"resnet20v2", 32, {2, 5}},
                            {"resnet50v2", 32, {2, 5}},
                            {"mobilenet_v1", 32, {2, 5}},
                            {"mobilenet_v2", 32, {2, 5}},
                            {"inception_v3", 299, {2, 5}},
                            {"vit_ti_4", 32, {2, 5}},
                            {"mlp_8", 32, {2, 5}},
                            {"fcn_resnet20", 24, {2, 5, 24, 24}},
                            {"ssd64_resnet20", 64, {2, 1360, 10}}}) {
    const Model model = MakeNetwork(e.name, 5);
    model->to(torch::kBFloat16);
    const Tensor images = torch::randn({2, 3, e.side, e.side}, torch::kBFloat16)
                              .contiguous(torch::MemoryFormat::ChannelsLast);
    const auto outputs = model->Outputs({images});
    EXPECT_EQ(outputs[0].sizes(), at::IntArrayRef(e.output)) << e.name;
    EXPECT_EQ(outputs.size(), e.name == "inception_v3" ? 2u : 1u);
    Tensor sum = torch::zeros({});
    for (const Tensor& output : outputs) sum = sum + output.to(torch::kFloat32).square().sum();
    sum.backward();
    for (const auto& parameter : model->named_parameters()) {
      ASSERT_TRUE(parameter.value().grad().defined()) << e.name << " " << parameter.key();
      EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
    }
    model->eval();
    torch::NoGradGuard no_grad;
    EXPECT_EQ(model->Outputs({images}).size(), 1u) << "auxiliary outputs are for training";
  }
}

// The formula of "Identity Mappings", written out for one block: x + W2 s(n2(W1 s(n1(x)))).
TEST(PreactivationBlock, AddsToItsInputAsItIs) {
  torch::manual_seed(1);
  PreactivationBlock block(ResidualOptions{}, 8, 8, 1, /*activated=*/false);
  block->eval();
  NetworkState state = StateOf(*block);
  state["bn1.running_mean"].fill_(0.3);
  state["bn2.running_var"].fill_(2);
  const Tensor x = torch::randn({2, 8, 6, 6});
  const auto normalised = [&](const Tensor& t, const std::string& at) {
    return torch::relu((t - state[at + ".running_mean"].view({1, -1, 1, 1})) /
                       (state[at + ".running_var"].view({1, -1, 1, 1}) + 1e-5).sqrt());
  };
  const auto convolved = [&](const Tensor& t, const std::string& at) {
    return torch::conv2d(t, state[at + ".weight"], {}, 1, 1);
  };
  const Tensor expected =
      x + convolved(normalised(convolved(normalised(x, "bn1"), "conv1"), "bn2"), "conv2");
  EXPECT_TRUE(torch::allclose(block->forward(x), expected, 1e-5, 1e-5));
}

TEST(DefaultBoxes, StandWhereSsdHasThem) {
  const Tensor boxes = DefaultBoxes({{8, 2, 50, 0.2, 0.45, {2}}}, 100);
  ASSERT_EQ(boxes.sizes(), at::IntArrayRef({16, 4}));
  const double wide = 0.2 * std::sqrt(2.0), narrow = 0.2 / std::sqrt(2.0);
  const Tensor first = torch::tensor({{0.25, 0.25, 0.2, 0.2},
                                      {0.25, 0.25, 0.3, 0.3},
                                      {0.25, 0.25, wide, narrow},
                                      {0.25, 0.25, narrow, wide}},
                                     torch::kFloat32);
  EXPECT_TRUE(torch::allclose(boxes.narrow(0, 0, 4), first));
  EXPECT_NEAR(boxes[4][0].item<double>(), 0.75, 1e-6) << "the next position is to the right";
  EXPECT_NEAR(boxes[8][1].item<double>(), 0.75, 1e-6);
}

class ScriptTest : public testing::Test {
 protected:
  std::string Write(const std::string& bytes) const {
    const std::string path = folder_.path() / "model.pt";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  const base::TemporaryDirectory folder_;
};

TEST_F(ScriptTest, AModelGoesToTorchScriptAndBackForBatchesOfAnySize) {
  for (const Expected& e : {Expected{"resnet20", 32, {}},
                            {"fcn_resnet20", 32, {}},
                            {"ssd64_resnet20", 64, {}},
                            {"mobilenet_v2", 32, {}},
                            {"resnet20v2", 32, {}}}) {
    const Model model = MakeNetwork(e.name, 3);
    torch::NoGradGuard no_grad;
    model->forward(torch::randn({4, 3, e.side, e.side}));  // running statistics of their own
    const auto bytes = ToTorchScript(model, e.side, e.side);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_TRUE(model->is_training()) << "it is left as it was";
    const auto script = LoadScript(Write(*bytes));
    ASSERT_TRUE(script.ok()) << script.status();
    EXPECT_TRUE(CheckState(StateOf(*model), StateOf(**script)).ok());
    model->eval();
    (*script)->eval();
    const Tensor images = torch::randn({3, 3, e.side, e.side});
    EXPECT_TRUE(torch::allclose((*script)->forward(images), model->forward(images), 1e-5, 1e-5))
        << e.name;
  }
}

TEST_F(ScriptTest, WhatIsNoModuleIsNamed) {
  EXPECT_EQ(LoadScript("/nowhere.pt").status().code(), absl::StatusCode::kNotFound);
  const std::string path = Write("PK no module");
  EXPECT_THAT(std::string(LoadScript(path).status().message()), HasSubstr(path));
  torch::jit::Module empty("__torch__.Empty");
  empty.define("def forward(self, x):\n    return x\n");
  empty.save(path);
  EXPECT_THAT(std::string(LoadScript(path).status().message()), HasSubstr("no parameters"));
}

TEST_F(ScriptTest, ItsParametersAreTheModelsAndTrainModeReachesIt) {
  torch::jit::Module module("__torch__.Scale");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("scale", torch::full({1}, 2.0f).requires_grad_(), false);
  module.define(
      "def forward(self, x):\n"
      "    y = x * self.scale\n"
      "    return (y, y + 1) if self.training else (y * 10, y)\n");
  const std::string path = folder_.path() / "scale.pt";
  module.save(path);
  const Model model = *LoadScript(path);
  const Tensor x = torch::ones({1});
  ASSERT_EQ(model->Outputs({x}).size(), 2u);
  model->Outputs({x})[1].sum().backward();
  EXPECT_EQ(model->parameters()[0].grad().item<float>(), 1);
  model->parameters()[0].set_data(torch::full({1}, 5.0f));  // as buckets do
  EXPECT_EQ(model->forward(x).item<float>(), 5);
  model->eval();
  EXPECT_EQ(model->forward(x).item<float>(), 50);
}

}  // namespace
}  // namespace tutti::models
