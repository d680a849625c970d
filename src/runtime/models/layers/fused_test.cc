// The fused layers, on the CPU in fp32 and bf16 and on a GPU in bf16, against libtorch's in fp64.
// Covers: runtime/device/cpu/cpu_layers.cc, runtime/device/cpu/batch_norm/batch_norm_cpu.cc,
// runtime/device/cpu/max_pool/max_pool_cpu.cc, runtime/device/cpu/vector/lanes.h.
#include "runtime/models/layers/fused.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/init.h>

#include <limits>
#include <tuple>

#include "base/process/child_process.h"
#include "base/test_patience.h"
#include "runtime/device/device.h"

namespace tutti::models {
namespace {

using torch::Tensor;

// Before anything else: libtorch looks for devices once.
const auto gpu = device::Open("cuda");

double Distance(const Tensor& ours, const Tensor& exact) {
  const Tensor a = ours.to(torch::kCPU, torch::kFloat64), b = exact.to(torch::kCPU);
  return ((a - b).norm() / b.norm()).item<double>();
}

struct Kind {
  std::string name;
  c10::DeviceType device;
  torch::Dtype type;
  double rounding;  // the most that it moves a tensor, by Distance
};

class FusedTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const bool on_gpu = GetParam().device == torch::kCUDA;
    if (on_gpu && !gpu.ok()) GTEST_SKIP() << gpu.status().message();
    device_ = on_gpu ? *gpu : torch::Device(torch::kCPU);
    if (device::LayersOn(device_) == nullptr) GTEST_SKIP() << "libtutti_cuda.so was not built";
    torch::manual_seed(3);
  }
  Tensor Random(torch::IntArrayRef size, double scale = 1, double shift = 0) const {
    return (torch::randn(size, device_) * scale + shift)
        .to(GetParam().type)
        .contiguous(torch::MemoryFormat::ChannelsLast);
  }
  static Tensor Exact(const Tensor& tensor) {
    return tensor.detach().cpu().to(torch::kFloat64).requires_grad_();
  }

  // What one rounding does, times as much: sums of a few thousand, or an element that one way is
  // on the other side of a ReLU.
  double Rounding(double times = 1) const { return times * GetParam().rounding; }

  torch::Device device_ = torch::kCPU;
};

// One rounding of bf16 is 2^-9, 1.1e-3 in this measure; gradients that are kept in between have
// two. One of fp32 is 2^-25.
INSTANTIATE_TEST_SUITE_P(Devices, FusedTest,
                         testing::Values(Kind{"CPU", torch::kCPU, torch::kBFloat16, 4e-3},
                                         Kind{"CPUInFp32", torch::kCPU, torch::kFloat32, 2e-6},
                                         Kind{"CUDA", torch::kCUDA, torch::kBFloat16, 4e-3}),
                         [](const auto& kind) { return kind.param.name; });

struct Shape {
  int64_t images, channels, side;
};

TEST_P(FusedTest, BatchNormReluAndAdditionEqualTheFormula) {
  for (const Shape& s : {Shape{4, 64, 56}, {4, 24, 7}, {2, 2048, 7}, {5, 16, 32}, {1, 32, 1}}) {
    BatchNorm ours(s.channels), exact(s.channels);
    torch::nn::init::uniform_(ours->weight, 0.5, 1.5);
    torch::nn::init::normal_(ours->bias);
    ours->to(device_);
    exact->to(torch::kFloat64);
    exact->weight.set_data(ours->weight.detach().cpu().to(torch::kFloat64));
    exact->bias.set_data(ours->bias.detach().cpu().to(torch::kFloat64));
    // The mean is ten deviations away from zero.
    const Tensor x = Random({s.images, s.channels, s.side, s.side}, 2, 20).requires_grad_();
    const Tensor residual = Random({s.images, s.channels, s.side, s.side}).requires_grad_();
    const Tensor x64 = Exact(x), residual64 = Exact(residual);
    ASSERT_TRUE(CanFuse(x));

    const Fork fork = ours->Joined(x, residual);
    const Tensor one = Random(x.sizes()), two = Random(x.sizes());
    torch::autograd::backward({fork.main, fork.shortcut}, {one, two});
    const Tensor y64 = exact->Joined(x64, residual64).main;
    // Where the sum is next to nothing, rounding decides on which side of it an element is.
    const Tensor same = fork.main.detach().cpu().gt(0).eq(y64.detach().gt(0));
    EXPECT_GT(same.to(torch::kFloat64).mean().item<double>(), 0.999);
    y64.backward((one.cpu().to(torch::kFloat64) + two.cpu().to(torch::kFloat64)));
    if (s.images * s.side > 1) {
      EXPECT_LT(Distance(fork.main.detach(), y64.detach()), Rounding());
      EXPECT_LT(Distance(x.grad(), x64.grad()), Rounding(8));
      EXPECT_LT(Distance(residual.grad(), residual64.grad()), Rounding(8));
      EXPECT_LT(Distance(ours->running_var, exact->running_var), 1e-4);
    }
    EXPECT_LT(Distance(ours->running_mean, exact->running_mean), 1e-5);
    EXPECT_EQ(ours->num_batches_tracked.item<int64_t>(), 1);
  }
}

TEST_P(FusedTest, TheSumOfTwoBatchNormsEqualsTheFormula) {
  for (const Shape& s : {Shape{4, 64, 56}, {4, 24, 7}, {2, 2048, 7}, {5, 16, 32}}) {
    for (const bool both : {true, false}) {
      std::vector<BatchNorm> ours, exact;
      std::vector<Tensor> x, x64;
      for (int i = 0; i < 2; ++i) {
        ours.emplace_back(s.channels);
        exact.emplace_back(s.channels);
        torch::nn::init::uniform_(ours[i]->weight, 0.5, 1.5);
        torch::nn::init::normal_(ours[i]->bias);
        ours[i]->to(device_);
        exact[i]->to(torch::kFloat64);
        exact[i]->weight.set_data(ours[i]->weight.detach().cpu().to(torch::kFloat64));
        exact[i]->bias.set_data(ours[i]->bias.detach().cpu().to(torch::kFloat64));
        x.push_back(Random({s.images, s.channels, s.side, s.side}, 2, 3 * i).requires_grad_());
        x64.push_back(Exact(x[i]));
      }
      EXPECT_EQ(CanFusePair(x[0], x[1]), device_.is_cuda());
      const Fork fork = ours[0]->Joined(x[0], *ours[1], x[1]);
      const Tensor y64 = exact[0]->Joined(x64[0], *exact[1], x64[1]).main;
      const Tensor one = Random(fork.main.sizes()), two = Random(fork.main.sizes());
      if (both) {
        torch::autograd::backward({fork.main, fork.shortcut}, {one, two});
      } else {
        fork.shortcut.backward(one);
      }
      const Tensor dy = one.cpu().to(torch::kFloat64);
      y64.backward(both ? dy + two.cpu() : dy);
      EXPECT_LT(Distance(fork.main.detach(), y64.detach()), Rounding());
      for (int i = 0; i < 2; ++i) {
        EXPECT_LT(Distance(x[i].grad(), x64[i].grad()), Rounding(13)) << i << " " << s.channels;
        EXPECT_LT(Distance(ours[i]->weight.grad(), exact[i]->weight.grad()), Rounding(13)) << i;
        EXPECT_LT(Distance(ours[i]->bias.grad(), exact[i]->bias.grad()), Rounding(13)) << i;
        EXPECT_LT(Distance(ours[i]->running_mean, exact[i]->running_mean), 1e-4) << i;
        EXPECT_LT(Distance(ours[i]->running_var, exact[i]->running_var), 1e-4) << i;
        EXPECT_EQ(ours[i]->num_batches_tracked.item<int64_t>(), 1);
      }
    }
  }
}

TEST_P(FusedTest, ReluMasksTheGradientOfAPlainBatchNorm) {
  BatchNorm ours(32), exact(32);
  ours->to(device_);
  exact->to(torch::kFloat64);
  const Tensor x = Random({4, 32, 9, 9}).requires_grad_(), x64 = Exact(x);
  const Tensor dy = Random(x.sizes());
  ours->Activated(x).backward(dy);
  exact->Activated(x64).backward(dy.cpu().to(torch::kFloat64));
  EXPECT_LT(Distance(x.grad(), x64.grad()), Rounding());
  EXPECT_LT(Distance(ours->weight.grad(), exact->weight.grad()), 1e-4);
  EXPECT_LT(Distance(ours->bias.grad(), exact->bias.grad()), 1e-4);
}

TEST_P(FusedTest, MaxPoolingEqualsLibtorchsForEvenAndOddSides) {
  for (const int64_t side : {112, 13, 2, 1}) {
    const Tensor x = Random({2, 64, side, side}).requires_grad_();
    const Tensor theirs = x.detach().clone().requires_grad_();
    const Tensor y = FusedMaxPool(x), expected = torch::max_pool2d(theirs, 3, 2, 1);
    ASSERT_TRUE(torch::equal(y, expected)) << side;
    const Tensor dy = Random(y.sizes());
    y.backward(dy);
    expected.backward(dy);
    EXPECT_LT(Distance(x.grad(), theirs.grad().to(torch::kFloat64)), Rounding()) << side;
  }
}

TEST_P(FusedTest, OtherActivationsAreLeftToLibtorch) {
  EXPECT_FALSE(CanFuse(Random({2, 8, 2, 2}).to(torch::kFloat64)));
  EXPECT_FALSE(CanFuse(Random({1, 3, 3, 3})));  // neither whole vectors, nor a few rows of them
  EXPECT_FALSE(CanFuse(Random({2, 8, 2, 2}).contiguous()));  // not channels-last
  EXPECT_TRUE(CanFuse(Random({2, 8, 2, 2})));
  const Tensor x = Random({2, 8, 6, 6});
  EXPECT_TRUE(torch::equal(FusedMaxPool(x), torch::max_pool2d(x, 3, 2, 1)));
}

// The stems of the networks here, and sizes that blocks of two do not divide.
TEST_P(FusedTest, AConvolutionOfImagesEqualsLibtorchs) {
  struct Stem {
    int64_t kernel, padding, height, width;
  };
  for (const Stem& s : {Stem{7, 3, 64, 48},
                        {7, 3, 33, 31},
                        {3, 0, 37, 40},
                        {3, 1, 32, 32},
                        {3, 1, 9, 7},
                        {5, 2, 12, 11},
                        {2, 0, 8, 8}}) {
    const auto options = torch::nn::Conv2dOptions(3, 24, s.kernel).stride(2).padding(s.padding);
    torch::nn::Conv2d ours(options), exact(options);
    exact->to(torch::kFloat64);
    ours->to(device_, GetParam().type);
    torch::NoGradGuard no_grad;
    for (size_t i = 0; i < 2; ++i) {
      exact->parameters()[i].copy_(ours->parameters()[i].detach().cpu());
    }
    const Tensor x = Random({4, 3, s.height, s.width});
    torch::AutoGradMode with_grad(true);
    const Tensor y = Convolved(ours, x), y64 = exact->forward(Exact(x).detach());
    ASSERT_EQ(y.sizes(), y64.sizes());
    EXPECT_LT(Distance(y.detach(), y64.detach()), Rounding()) << s.kernel << " " << s.height;
    const Tensor dy = Random(y.sizes());
    y.backward(dy);
    y64.backward(dy.cpu().to(torch::kFloat64));
    EXPECT_LT(Distance(ours->weight.grad(), exact->weight.grad()), Rounding()) << s.kernel;
    EXPECT_LT(Distance(ours->bias.grad(), exact->bias.grad()), Rounding(2)) << s.kernel;
  }
}

TEST_P(FusedTest, ANanIsNotHidden) {
  Tensor x = Random({2, 32, 5, 5});
  x[1][7][2][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(FusedMaxPool(x).isnan().any().item<bool>());
  BatchNorm norm(32);
  norm->to(device_);
  const Tensor y = norm->Activated(x);
  EXPECT_TRUE(y.select(1, 7).isnan().all().item<bool>());
  EXPECT_FALSE(y.select(1, 8).isnan().any().item<bool>());
}

TEST_P(FusedTest, AResidualOfAnotherTypeIsTakenInThatOfTheActivation) {
  BatchNorm norm(32);
  norm->to(device_);
  const Tensor x = Random({2, 32, 4, 4});
  const Tensor residual = Random(x.sizes()).to(torch::kFloat64);
  if (device_.is_cuda()) GTEST_SKIP() << "networks do not do this";
  const Tensor wanted = norm->Joined(x, residual.to(GetParam().type)).main;
  EXPECT_TRUE(torch::equal(norm->Joined(x, residual).main, wanted));
}

TEST(FusedNetworks, TrainInFp32AsTheFormulaSays) {
  for (const auto& [name, images, side] : {std::tuple("resnet20", 8, 32), {"resnet18", 4, 96}}) {
    torch::manual_seed(5);
    const Tensor exact_images = torch::randn({images, 3, side, side}, torch::kFloat64);
    const auto gradients = [&](torch::Dtype type) {
      const Model model = *MakeModel({name, 10}, 1);
      model->to(type);
      model->train();
      const Tensor x = exact_images.to(type).contiguous(torch::MemoryFormat::ChannelsLast);
      model->forward(x).square().sum().backward();
      std::vector<Tensor> all;
      for (const Tensor& p : model->parameters()) all.push_back(p.grad().flatten());
      return torch::cat(all);
    };
    // Rounding is 1e-6 of it; a ReLU's mask that differs where its input is all but 0 changes more.
    EXPECT_LT(Distance(gradients(torch::kFloat32), gradients(torch::kFloat64)), 2e-3) << name;
  }
}

// Kernels are chosen once in a process.
TEST(FusedKernels, EachInstructionSetDoesTheSame) {
  for (const char* const set : {"default", "avx2", "avx512"}) {
    base::ChildOptions options;
    options.arguments = {"/proc/self/exe",
                         "--gtest_filter=Devices/FusedTest.*Norm*/CPU*:*MaxPool*/CPU*:*Nan*/CPU*",
                         "--gtest_brief=1"};
    options.environment = base::CurrentEnvironment();
    options.environment["TUTTI_CPU_CAPABILITY"] = set;
    options.environment["OMP_NUM_THREADS"] = "1";
    for (const char* const name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) {
      options.environment.erase(name);  // else it runs a part of them
    }
    auto child = base::ChildProcess::Start(options);
    ASSERT_TRUE(child.ok()) << child.status();
    const auto exit = child->Wait(base::Deadline::After(base::Patient(absl::Minutes(2))));
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_TRUE(exit->ok()) << set << ": " << exit->ToString();
  }
}

}  // namespace
}  // namespace tutti::models
