// Every network that can be cut: stages one after the other compute what the whole does, bit for
// bit, under its names, and hold nothing else of it. Covers: layers/layered_model.cc.
#include "runtime/models/layer.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/dropout.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/models/model.h"

namespace tutti::models {
namespace {

using testing::ElementsAre;
using torch::Tensor;

Model WholeModel(const std::string& name) {
  auto model = MakeModel({name, 3}, std::nullopt);
  EXPECT_TRUE(model.ok()) << model.status();
  for (const auto& module : (*model)->modules()) {
    if (auto* dropout = module->as<torch::nn::DropoutImpl>()) dropout->options.p(0);
  }
  return *model;
}

// Returns the layers in `count` neighbouring parts of about one size.
std::vector<Model> StagesOf(const Model& whole, size_t count) {
  const std::vector<Layer> layers = whole->Layers();
  std::vector<Model> stages;
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](size_t part) {
      return layers.begin() + static_cast<std::ptrdiff_t>(layers.size() * part / count);
    };
    stages.push_back(MakeStage({at(i), at(i + 1)}));
  }
  return stages;
}

struct Pass {
  Tensor output, input_gradient;
};

Pass RunWhole(const Model& model, const Tensor& images, const Tensor& gradient) {
  Tensor input = images.detach().requires_grad_();
  const Tensor output = model->forward(input);
  output.backward(gradient);
  return {output.detach(), input.grad()};
}

// Each stage has an autograd graph of its own, as on ranks of their own.
Pass RunStages(const std::vector<Model>& stages, const Tensor& images, const Tensor& gradient) {
  std::vector<Tensor> inputs, outputs;
  Tensor x = images;
  for (const Model& stage : stages) {
    inputs.push_back(x.detach().requires_grad_());
    outputs.push_back(stage->forward(inputs.back()));
    x = outputs.back();
  }
  Tensor towards_input = gradient;
  for (size_t i = stages.size(); i-- > 0;) {
    outputs[i].backward(towards_input);
    towards_input = inputs[i].grad();
  }
  return {x.detach(), towards_input};
}

// Returns the gradients, and leaves none behind.
std::vector<std::pair<std::string, Tensor>> TakeGradients(const std::vector<Model>& parts) {
  std::vector<std::pair<std::string, Tensor>> gradients;
  for (const Model& part : parts) {
    for (auto& parameter : part->named_parameters()) {
      gradients.emplace_back(parameter.key(), parameter.value().grad());
      parameter.value().mutable_grad().reset();
    }
  }
  return gradients;
}

void ExpectStagesComputeTheWhole(const std::string& name, const Tensor& images) {
  const Model whole = WholeModel(name);
  whole->to(images.scalar_type());
  const Tensor gradient = torch::randn({images.size(0), 3}, images.scalar_type());
  const Pass expected = RunWhole(whole, images, gradient);
  const auto expected_gradients = TakeGradients({whole});
  for (const size_t count : {2, 3}) {
    SCOPED_TRACE(absl::StrCat(name, " in ", count, " stages"));
    const std::vector<Model> stages = StagesOf(whole, count);
    const Pass actual = RunStages(stages, images, gradient);
    EXPECT_TRUE(actual.output.equal(expected.output));
    EXPECT_TRUE(actual.input_gradient.equal(expected.input_gradient));
    const auto gradients = TakeGradients(stages);
    ASSERT_EQ(gradients.size(), expected_gradients.size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_EQ(gradients[i].first, expected_gradients[i].first);
      EXPECT_TRUE(gradients[i].second.equal(expected_gradients[i].second)) << gradients[i].first;
    }
  }
}

std::vector<std::string> NamesIn(const std::vector<Model>& parts) {
  std::vector<std::string> names;
  for (const Model& part : parts) {
    for (const auto& parameter : part->named_parameters()) names.push_back(parameter.key());
  }
  for (const Model& part : parts) {
    for (const auto& buffer : part->named_buffers()) names.push_back(buffer.key());
  }
  return names;
}

std::vector<std::string> LayerNames(const std::string& model) {
  std::vector<std::string> names;
  for (const Layer& layer : WholeModel(model)->Layers()) names.push_back(layer.name);
  return names;
}

// The others differ from one of them in the number or the width of layers alone, and take long.
std::vector<std::string> RunNetworks() {
  return {"resnet20",   "resnet18",   "resnet50",     "resnet50v1",   "resnet20v2",
          "resnet18v2", "resnet50v2", "mobilenet_v1", "mobilenet_v2", "vit_ti_4"};
}

Tensor SomeImages(torch::ScalarType type) {
  at::set_num_threads(1);  // several wait for each other on a processor's cycles
  torch::manual_seed(1);
  return torch::randn({2, 3, 32, 32}, type);
}

class LayersTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Networks, LayersTest, testing::ValuesIn(RunNetworks()),
                         [](const auto& info) { return info.param; });

TEST_P(LayersTest, StagesComputeInDoublesWhatTheWholeDoes) {
  ExpectStagesComputeTheWhole(GetParam(), SomeImages(torch::kFloat64));
}

TEST_P(LayersTest, StagesComputeInFloatsWhatTheWholeDoes) {
  ExpectStagesComputeTheWhole(
      GetParam(), SomeImages(torch::kFloat32).contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(Layers, StagesOfVggDoToo) {  // whose linear layers would take gigabytes of doubles
  ExpectStagesComputeTheWhole("vgg16", SomeImages(torch::kFloat32));
}

TEST(Layers, HaveTheNamesOfTheWholeInItsOrder) {
  int64_t cut = 0;
  for (const std::string& name : ModelNames()) {
    const Model whole = WholeModel(name);
    const std::vector<Layer> layers = whole->Layers();
    if (layers.empty()) continue;
    ++cut;
    for (const size_t count : {size_t{2}, layers.size()}) {
      EXPECT_EQ(NamesIn(StagesOf(whole, count)), NamesIn({whole})) << name;
    }
    for (const Layer& layer : layers) {
      EXPECT_EQ(layer.name, layer.modules.at(0).first);
      EXPECT_FALSE(MakeStage({layer})->parameters().empty()) << name << " " << layer.name;
    }
  }
  EXPECT_GE(cut, 20);
}

TEST(Layers, BeginWhereAUserWouldCut) {
  EXPECT_THAT(LayerNames("resnet20"),
              ElementsAre("conv1", "layer1.0", "layer1.1", "layer1.2", "layer2.0", "layer2.1",
                          "layer2.2", "layer3.0", "layer3.1", "layer3.2", "fc"));
  EXPECT_EQ(LayerNames("resnet20v2").back(), "norm");
  EXPECT_THAT(LayerNames("vgg16"),
              ElementsAre("features.0", "features.2", "features.5", "features.7", "features.10",
                          "features.12", "features.14", "features.17", "features.19", "features.21",
                          "features.24", "features.26", "features.28", "classifier.0",
                          "classifier.3", "classifier.6"));
  EXPECT_EQ(LayerNames("mobilenet_v1").back(), "classifier");
  EXPECT_EQ(LayerNames("mobilenet_v2").back(), "classifier.1");
  const std::vector<std::string> transformer = LayerNames("vit_ti_4");
  ASSERT_EQ(transformer.size(), 14u);
  EXPECT_EQ(transformer[0], "conv_proj");
  EXPECT_EQ(transformer[12], "encoder.layers.encoder_layer_11");
  EXPECT_EQ(transformer[13], "encoder.ln");
  for (const char* name : {"inception_v3", "fcn_resnet20", "ssd64_resnet20"}) {
    EXPECT_TRUE(LayerNames(name).empty()) << name;
  }
}

TEST(Layers, AStageKeepsItsOwnTensorsAlone) {
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  for (const char* name : {"resnet20", "resnet20v2", "mobilenet_v1", "mobilenet_v2", "vit_ti_4"}) {
    Model whole = WholeModel(name);
    std::vector<WeakTensor> tensors;
    for (const auto& tensor : whole->parameters()) tensors.emplace_back(tensor.getIntrusivePtr());
    for (const auto& tensor : whole->buffers()) tensors.emplace_back(tensor.getIntrusivePtr());
    const Model stage = StagesOf(whole, 3)[1];
    const std::weak_ptr<ModelImpl> model = whole;
    whole.reset();
    EXPECT_TRUE(model.expired());
    const auto living = std::count_if(tensors.begin(), tensors.end(),
                                      [](const WeakTensor& tensor) { return !tensor.expired(); });
    EXPECT_EQ(static_cast<size_t>(living), stage->parameters().size() + stage->buffers().size())
        << name;
    EXPECT_LT(static_cast<size_t>(living), tensors.size());
  }
}

TEST(Layers, AStageGoesBetweenTrainingAndEvaluationAsTheWholeDoes) {
  const Model whole = WholeModel("resnet20");
  whole->eval();
  const Model stage = StagesOf(whole, 2)[1];
  EXPECT_FALSE(stage->is_training());
  stage->train();
  for (const auto& module : stage->modules()) EXPECT_TRUE(module->is_training());
}

}  // namespace
}  // namespace tutti::models
