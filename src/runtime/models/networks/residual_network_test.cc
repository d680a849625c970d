// Covers: runtime/models/layers/initialisation.cc, runtime/models/state.cc.
#include "runtime/models/networks/residual_network.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/models/networks/networks_test_support.h"
#include "runtime/models/state.h"

namespace tutti::models {
namespace {

using torch::Tensor;
using State = std::map<std::string, Tensor>;
using Shapes = std::map<std::string, std::vector<int64_t>>;

TEST(ResidualNetwork, HasThePublishedNumberOfParameters) {
  // torchvision's model pages.
  EXPECT_EQ(CountOf(MakeNetwork("resnet18", 1000, std::nullopt)), 11'689'512);
  EXPECT_EQ(CountOf(MakeNetwork("resnet34", 1000, std::nullopt)), 21'797'672);
  EXPECT_EQ(CountOf(MakeNetwork("resnet50", 1000, std::nullopt)), 25'557'032);
  EXPECT_EQ(CountOf(MakeNetwork("resnet101", 1000, std::nullopt)), 44'549'160);
  EXPECT_EQ(CountOf(MakeNetwork("resnet152", 1000, std::nullopt)), 60'192'808);
  // He et al., table 6: 0.27, 0.46, 0.66, 0.85 and 1.7 million.
  EXPECT_EQ(CountOf(MakeNetwork("resnet20", 10, std::nullopt)), 269'722);
  EXPECT_EQ(CountOf(MakeNetwork("resnet32", 10, std::nullopt)), 464'154);
  EXPECT_EQ(CountOf(MakeNetwork("resnet44", 10, std::nullopt)), 658'586);
  EXPECT_EQ(CountOf(MakeNetwork("resnet56", 10, std::nullopt)), 853'018);
  EXPECT_EQ(CountOf(MakeNetwork("resnet110", 10, std::nullopt)), 1'727'962);
}

// What torchvision's state_dict() of a ResNet holds, by its published structure.
class TorchvisionShapes {
 public:
  TorchvisionShapes(const std::vector<int>& blocks, bool bottleneck) {
    Convolution("conv1", 64, 3, 7);
    Norm("bn1", 64);
    int64_t inputs = 64;
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      for (int i = 0; i < blocks[stage]; ++i) {
        inputs =
            Block(absl::StrCat("layer", stage + 1, ".", i, "."), inputs, 64 << stage, bottleneck);
      }
    }
    shapes["fc.weight"] = {1000, inputs};
    shapes["fc.bias"] = {1000};
  }

  Shapes shapes;

 private:
  int64_t Block(const std::string& at, int64_t inputs, int64_t width, bool bottleneck) {
    const int64_t outputs = bottleneck ? 4 * width : width;
    Convolution(at + "conv1", width, inputs, bottleneck ? 1 : 3);
    Norm(at + "bn1", width);
    Convolution(at + "conv2", width, width, 3);
    Norm(at + "bn2", width);
    if (bottleneck) {
      Convolution(at + "conv3", outputs, width, 1);
      Norm(at + "bn3", outputs);
    }
    if (inputs != outputs) {
      Convolution(at + "downsample.0", outputs, inputs, 1);
      Norm(at + "downsample.1", outputs);
    }
    return outputs;
  }
  void Convolution(const std::string& name, int64_t outputs, int64_t inputs, int64_t kernel) {
    shapes[name + ".weight"] = {outputs, inputs, kernel, kernel};
  }
  void Norm(const std::string& name, int64_t channels) {
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
      shapes[name + part] = {channels};
    }
    shapes[name + ".num_batches_tracked"] = {};
  }
};

Shapes ShapesOf(const Model& model) {
  Shapes shapes;
  for (const auto& [name, tensor] : StateOf(*model)) shapes[name] = tensor.sizes().vec();
  return shapes;
}

TEST(ResidualNetwork, HasTorchvisionsNamesAndShapes) {
  const Shapes eighteen = TorchvisionShapes({2, 2, 2, 2}, /*bottleneck=*/false).shapes;
  EXPECT_EQ(eighteen.size(), 122u);
  EXPECT_EQ(ShapesOf(MakeNetwork("resnet18", 1000)), eighteen);

  const Shapes fifty = TorchvisionShapes({3, 4, 6, 3}, /*bottleneck=*/true).shapes;
  EXPECT_EQ(fifty.size(), 320u);
  EXPECT_EQ(ShapesOf(MakeNetwork("resnet50", 1000)), fifty);
}

// The network again, as plain calls on a state dict: conv, bn and the block as the papers draw it.
struct Functional {
  State state;

  Tensor ConvNorm(const Tensor& x, const std::string& conv, const std::string& bn, int64_t stride,
                  int64_t padding) {
    const Tensor y = torch::conv2d(x, state.at(conv + ".weight"), {}, stride, padding);
    return torch::batch_norm(y, state.at(bn + ".weight"), state.at(bn + ".bias"),
                             state.at(bn + ".running_mean"), state.at(bn + ".running_var"),
                             /*training=*/false, 0.1, 1e-5, false);
  }
  Tensor Block(const Tensor& x, const std::string& at, int64_t stride, bool bottleneck) {
    Tensor y;
    if (bottleneck) {  // v1.5: the 3x3 convolution has the stride
      y = torch::relu(ConvNorm(x, at + "conv1", at + "bn1", 1, 0));
      y = torch::relu(ConvNorm(y, at + "conv2", at + "bn2", stride, 1));
      y = ConvNorm(y, at + "conv3", at + "bn3", 1, 0);
    } else {
      y = torch::relu(ConvNorm(x, at + "conv1", at + "bn1", stride, 1));
      y = ConvNorm(y, at + "conv2", at + "bn2", 1, 1);
    }
    if (state.contains(at + "downsample.0.weight")) {
      return torch::relu(y + ConvNorm(x, at + "downsample.0", at + "downsample.1", stride, 0));
    }
    if (stride == 1) return torch::relu(y + x);
    const Tensor sampled = torch::avg_pool2d(x, 1, stride);
    return torch::relu(y + torch::cat({sampled, torch::zeros_like(sampled)}, 1));
  }
  Tensor Run(Tensor x, const std::vector<int>& blocks, bool bottleneck, bool cifar) {
    x = torch::relu(ConvNorm(x, "conv1", "bn1", cifar ? 1 : 2, cifar ? 1 : 3));
    if (!cifar) x = torch::max_pool2d(x, 3, 2, 1);
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      for (int i = 0; i < blocks[stage]; ++i) {
        x = Block(x, absl::StrCat("layer", stage + 1, ".", i, "."), stage > 0 && i == 0 ? 2 : 1,
                  bottleneck);
      }
    }
    return torch::linear(x.mean({2, 3}), state.at("fc.weight"), state.at("fc.bias"));
  }
};

void ExpectEqualToFunctional(const std::string& name, const std::vector<int>& blocks,
                             bool bottleneck, bool cifar) {
  const Model model = MakeNetwork(name, 10);
  model->to(torch::kFloat64);
  {  // Running statistics that differ from channel to channel.
    torch::NoGradGuard no_grad;
    model->forward(torch::randn({2, 3, 48, 48}, torch::kFloat64));
  }
  model->eval();
  Functional functional{StateOf(*model)};
  for (const auto& parameter : model->named_parameters()) {
    functional.state[parameter.key()] = parameter.value().detach().clone().requires_grad_();
  }
  const Tensor images = torch::randn({1, 3, 48, 48}, torch::kFloat64);
  const Tensor ours = model->forward(images);
  const Tensor theirs = functional.Run(images, blocks, bottleneck, cifar);
  EXPECT_TRUE(torch::allclose(ours, theirs, 1e-10, 1e-10)) << name;
  ours.square().sum().backward();
  theirs.square().sum().backward();
  for (const auto& parameter : model->named_parameters()) {
    EXPECT_TRUE(torch::allclose(parameter.value().grad(), functional.state[parameter.key()].grad(),
                                1e-8, 1e-8))
        << name << " " << parameter.key();
  }
}

TEST(ResidualNetwork, ComputesWhatThePapersDraw) {
  ExpectEqualToFunctional("resnet20", {3, 3, 3}, /*bottleneck=*/false, /*cifar=*/true);
  ExpectEqualToFunctional("resnet18", {2, 2, 2, 2}, /*bottleneck=*/false, /*cifar=*/false);
  ExpectEqualToFunctional("resnet50", {3, 4, 6, 3}, /*bottleneck=*/true, /*cifar=*/false);
}

TEST(ResidualNetwork, InitialisesAsTorchvision) {
  State state = StateOf(*MakeNetwork("resnet18", 1000));
  // Kaiming with fan_out = 512 * 3 * 3.
  EXPECT_NEAR(state["layer4.0.conv1.weight"].std().item<double>(), std::sqrt(2.0 / (512 * 9)),
              2e-4);
  EXPECT_NEAR(state["layer4.0.conv1.weight"].mean().item<double>(), 0, 2e-4);
  // Uniform within 1 / sqrt(512).
  EXPECT_NEAR(state["fc.weight"].abs().max().item<double>(), 1 / std::sqrt(512.0), 1e-4);
  EXPECT_NEAR(state["fc.weight"].std().item<double>(), 1 / std::sqrt(3 * 512.0), 1e-4);
  // No zero_init_residual.
  EXPECT_TRUE(state["layer1.0.bn2.weight"].eq(1).all().item<bool>());
}

// Whatever stands before and behind it: a rank may make some layers alone.
TEST(Initialisation, ALayerBeginsByTheSeedAndItsNameAlone) {
  const auto expect_equal = [](const char* one, const char* other, int64_t classes) {
    const State a = StateOf(*MakeNetwork(one, 10, /*seed=*/7));
    const State b = StateOf(*MakeNetwork(other, classes, /*seed=*/7));
    int drawn = 0;
    for (const auto& [name, tensor] : a) {
      const auto found = b.find(name);
      if (found == b.end() || !found->second.sizes().equals(tensor.sizes())) continue;
      EXPECT_TRUE(tensor.equal(found->second)) << one << ", " << other << ": " << name;
      drawn += tensor.dim() > 1 ? 1 : 0;
    }
    EXPECT_GT(drawn, 5) << one << " and " << other;
  };
  expect_equal("resnet20", "resnet32", 10);
  expect_equal("fcn_resnet50", "fcn_resnet50_aux", 10);
  expect_equal("mobilenet_v2", "mobilenet_v2", 3);
  expect_equal("vit_ti_4", "vit_ti_16", 10);
  const State state = StateOf(*MakeNetwork("resnet20", 10, /*seed=*/7));
  EXPECT_FALSE(state.at("layer1.0.conv1.weight").equal(state.at("layer1.0.conv2.weight")));
}

TEST(ResidualNetwork, IsAFunctionOfTheSeed) {
  torch::manual_seed(1);
  State first = StateOf(*MakeNetwork("resnet20", 10, /*seed=*/7));
  torch::manual_seed(2);
  State again = StateOf(*MakeNetwork("resnet20", 10, /*seed=*/7));
  State other = StateOf(*MakeNetwork("resnet20", 10, /*seed=*/8));
  for (const auto& [name, tensor] : first) EXPECT_TRUE(tensor.equal(again[name])) << name;
  EXPECT_FALSE(first["conv1.weight"].equal(other["conv1.weight"]));
}

TEST(ResidualNetwork, TrainsInBfloat16AndChannelsLast) {
  const Model reference = MakeNetwork("resnet20", 10);
  const Model model = MakeNetwork("resnet20", 10);
  model->to(torch::kBFloat16);
  EXPECT_EQ(StateOf(*model)["conv1.weight"].scalar_type(), torch::kBFloat16);
  EXPECT_EQ(StateOf(*model)["bn1.running_mean"].scalar_type(), torch::kFloat32);
  EXPECT_EQ(StateOf(*model)["bn1.num_batches_tracked"].scalar_type(), torch::kInt64);

  const Tensor images = torch::randn({8, 3, 32, 32});
  const Tensor expected = reference->forward(images);
  const Tensor logits =
      model->forward(images.to(torch::kBFloat16).contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_EQ(logits.scalar_type(), torch::kBFloat16);
  // 20 layers of relative error 2^-9 each.
  EXPECT_LT((logits - expected).norm().item<double>(), 0.05 * expected.norm().item<double>());

  torch::log_softmax(logits, 1, torch::kFloat32).mean().backward();
  for (const auto& parameter : model->named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
  }
}

TEST(Registry, NamesTheModelsThereAre) {
  const absl::Status status = MakeModel({"resnet21", 10}, 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("did you mean"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("resnet56"), absl::string_view::npos) << status;
  EXPECT_FALSE(MakeModel({"resnet20", 0}, 1).ok());
  EXPECT_EQ(InputSize("resnet20"), 32);
  EXPECT_EQ(InputSize("resnet50"), 224);
  EXPECT_EQ(InputSize("no such"), 0);
}

TEST(State, GoesFromOneModelToAnother) {
  const Model from = MakeNetwork("resnet20", 10, /*seed=*/1),
              to = MakeNetwork("resnet20", 10, /*seed=*/2);
  ASSERT_TRUE(LoadState(StateOf(*from), *to).ok());
  State expected = StateOf(*from);
  for (const auto& [name, tensor] : StateOf(*to)) EXPECT_TRUE(tensor.equal(expected[name]));
}

TEST(State, SaysHowAnotherModelDiffersAndChangesNothing) {
  const Model model = MakeNetwork("resnet20", 10);
  State state = StateOf(*MakeNetwork("resnet20", 100, /*seed=*/2));
  state.erase("conv1.weight");
  state["head.weight"] = torch::ones(1);
  const Tensor before = StateOf(*model)["layer1.0.conv1.weight"].clone();
  const absl::Status status = LoadState(state, *model);
  EXPECT_EQ(status.message(),
            "the tensors are another model's: missing conv1.weight; unexpected head.weight; of "
            "another shape fc.bias ([100], needs [10]), fc.weight ([100, 64], needs [10, 64])");
  EXPECT_TRUE(StateOf(*model)["layer1.0.conv1.weight"].equal(before));
}

TEST(State, FitsWhatItCanAndNamesTheRest) {
  const Model model = MakeNetwork("resnet20", 10, /*seed=*/1);
  const State own = StateOf(*model), other = StateOf(*MakeNetwork("resnet20", 100, /*seed=*/2));
  State some = other;
  some.erase("bn1.running_mean");
  const Tensor head = own.at("fc.weight").clone();
  const auto rest = LoadFitting(some, *model);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(*rest, (std::vector<std::string>{"bn1.running_mean", "fc.bias", "fc.weight"}));
  EXPECT_TRUE(own.at("layer3.2.conv2.weight").equal(other.at("layer3.2.conv2.weight")));
  EXPECT_TRUE(own.at("fc.weight").equal(head));

  const Tensor before = own.at("conv1.weight").clone();
  const State prefixed = {{"module.conv1.weight", before + 1}, {"conv1.weight", before + 1}};
  EXPECT_EQ(LoadFitting(prefixed, *model).status().message(),
            "the model has no module.conv1.weight");
  const State head_alone = {{"fc.bias", torch::zeros({100})}};
  EXPECT_EQ(LoadFitting(head_alone, *model).status().message(),
            "no tensor is of the shape that the model has");
  EXPECT_TRUE(own.at("conv1.weight").equal(before));
}

}  // namespace
}  // namespace tutti::models
