// The convolutions against libtorch's in fp64.
#include "runtime/device/cpu/convolution.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "absl/cleanup/cleanup.h"
#include "runtime/device/cpu/amx.h"
#include "runtime/device/cpu/convolution_ops.h"

namespace tutti::device {
namespace {

using torch::Tensor;

Tensor Random(torch::IntArrayRef size) {
  return torch::randn(size).to(torch::kBFloat16).contiguous(torch::MemoryFormat::ChannelsLast);
}
Tensor Exact(const Tensor& tensor) {
  return tensor.detach().to(torch::kFloat64).contiguous().requires_grad_();
}
double Distance(const Tensor& ours, const Tensor& exact) {
  return ((ours.to(torch::kFloat64) - exact).norm() / exact.norm()).item<double>();
}
// Within `bound` in that measure, and no value of them all far away: in a large result a single
// wrong one would not show.
void ExpectNear(const Tensor& ours, const Tensor& exact, double bound, int threads) {
  EXPECT_LT(Distance(ours, exact), bound) << threads << " threads";
  const Tensor usual = exact.square().mean().sqrt();
  const Tensor most = (ours.to(torch::kFloat64) - exact).abs().max();
  EXPECT_LT((most / usual).item<double>(), 0.1) << threads << " threads";
}

class ConvolutionTest : public testing::TestWithParam<cpu::Convolution> {
 protected:
  void SetUp() override {
    UseOwnConvolutions();
    torch::manual_seed(6);
  }
};

// Every remainder of pixels by tiles, odd and even sides, one and several bands, strips and chunks;
// steps of 2 that reach the last row or not; stems with odd and even rows of the kernel.
INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionTest,
    testing::Values(
        cpu::Convolution{2, 56, 56, 64, 32, 1}, cpu::Convolution{3, 7, 7, 32, 96, 1},
        cpu::Convolution{1, 1, 1, 32, 32, 1}, cpu::Convolution{2, 11, 13, 64, 64, 1},
        cpu::Convolution{2, 9, 9, 320, 64, 1}, cpu::Convolution{2, 56, 56, 32, 64, 3},
        cpu::Convolution{9, 7, 7, 64, 32, 3}, cpu::Convolution{3, 14, 14, 96, 64, 3},
        cpu::Convolution{2, 5, 17, 32, 32, 3}, cpu::Convolution{1, 1, 1, 32, 32, 3},
        cpu::Convolution{1, 40, 3, 32, 32, 3}, cpu::Convolution{2, 10, 10, 160, 32, 3},
        cpu::Convolution{2, 56, 56, 64, 32, 1, 2}, cpu::Convolution{3, 7, 9, 32, 64, 1, 2},
        cpu::Convolution{1, 1, 2, 32, 32, 1, 2}, cpu::Convolution{2, 29, 28, 32, 64, 3, 2},
        cpu::Convolution{3, 14, 15, 96, 32, 3, 2}, cpu::Convolution{1, 1, 1, 32, 32, 3, 2},
        cpu::Convolution{5, 2, 3, 32, 32, 3, 2}, cpu::Convolution{2, 64, 61, 3, 64, 7, 2},
        cpu::Convolution{1, 5, 2, 3, 32, 7, 2}, cpu::Convolution{3, 32, 31, 3, 32, 3, 1},
        cpu::Convolution{2, 17, 17, 4, 32, 3, 2}, cpu::Convolution{2, 28, 28, 1, 32, 7, 1},
        cpu::Convolution{3, 32, 32, 16, 16, 3}, cpu::Convolution{2, 13, 61, 16, 16, 3},
        cpu::Convolution{2, 31, 32, 16, 32, 3, 2}, cpu::Convolution{3, 9, 8, 64, 16, 3, 2},
        cpu::Convolution{1, 1, 1, 16, 16, 3}, cpu::Convolution{2, 32, 31, 3, 16, 3},
        cpu::Convolution{2, 11, 13, 16, 16, 1}, cpu::Convolution{2, 7, 9, 16, 64, 1, 2},
        cpu::Convolution{3, 9, 9, 96, 16, 1}, cpu::Convolution{2, 20, 21, 3, 16, 7, 2},
        cpu::Convolution{5, 7, 8, 256, 288, 3}, cpu::Convolution{1, 12, 23, 32, 32, 3},
        cpu::Convolution{6, 14, 14, 224, 320, 3}, cpu::Convolution{1, 23, 24, 512, 512, 1}),
    [](const auto& shape) {
      const cpu::Convolution& c = shape.param;
      return std::to_string(c.images) + "x" + std::to_string(c.height) + "x" +
             std::to_string(c.width) + "of" + std::to_string(c.inputs) + "to" +
             std::to_string(c.outputs) + "by" + std::to_string(c.kernel) + "every" +
             std::to_string(c.stride);
    });

// One rounding of bf16 is 1.7e-3 in this measure.
void ExpectTheFormula(const cpu::Convolution& c) {
  const double bound = cpu::GoesByWinograd(c) ? 5e-3 : 2.5e-3;
  const Tensor x = Random({c.images, c.inputs, c.height, c.width}).requires_grad_(!c.is_stem());
  const Tensor w = Random({c.outputs, c.inputs, c.kernel, c.kernel}).requires_grad_();
  const Tensor x64 = Exact(x), w64 = Exact(w);
  const Tensor y64 = torch::conv2d(x64, w64, {}, c.stride, c.kernel / 2);
  const Tensor dy = Random(y64.sizes());
  y64.backward(dy.to(torch::kFloat64));
  const int before = at::get_num_threads();
  // Of many threads some get nothing, or share both pixels and channels: where that takes no time.
  const bool small = c.images * c.inputs * c.outputs < 1 << 16, many = c.outputs == 320;
  for (int threads : small || many ? std::vector{1, 2, 3, 4, 7, 40} : std::vector{1, 2, 3}) {
    at::set_num_threads(threads);
    x.mutable_grad().reset();
    w.mutable_grad().reset();
    const Tensor y = torch::conv2d(x, w, {}, c.stride, c.kernel / 2);
    y.backward(dy);
    EXPECT_TRUE(y.is_contiguous(torch::MemoryFormat::ChannelsLast));
    ExpectNear(y.detach(), y64.detach(), bound, threads);
    if (!c.is_stem()) ExpectNear(x.grad(), x64.grad(), bound, threads);
    ExpectNear(w.grad(), w64.grad(), bound, threads);
  }
  at::set_num_threads(before);
}

TEST_P(ConvolutionTest, EqualsTheFormulaForwardAndBackwardWithAnyNumberOfThreads) {
  const absl::Cleanup restore = [] {
    cpu::LeaveAmxAlone(false);
    cpu::UseWinograd(true);
  };
  bool taken = false;
  for (bool alone : {false, true}) {
    cpu::LeaveAmxAlone(alone);
    if (alone == cpu::HasAmx()) continue;
    for (bool winograd : {false, true}) {
      cpu::UseWinograd(winograd);
      if (!cpu::Takes(GetParam())) continue;  // without AVX512-BF16, or a stem where there is AMX
      if (winograd && !cpu::GoesByWinograd(GetParam())) continue;
      ExpectTheFormula(GetParam());
      taken = true;
    }
  }
  if (!taken) GTEST_SKIP() << "this processor has no AVX512-BF16";
}

TEST(Convolution, GoesByWinogradWhereThatIsWorthIt) {
  const absl::Cleanup restore = [] {
    cpu::LeaveAmxAlone(false);
    cpu::UseWinograd(true);
  };
  cpu::LeaveAmxAlone(true);
  cpu::UseWinograd(true);
  const cpu::Convolution usual = {2, 56, 56, 32, 64, 3};
  if (!cpu::Takes(usual)) GTEST_SKIP() << "this processor has no AVX512-BF16";
  EXPECT_TRUE(cpu::GoesByWinograd(usual));
  EXPECT_TRUE(cpu::GoesByWinograd({8, 5, 5, 32, 32, 3})) << "36 places for 25 results";
  EXPECT_FALSE(cpu::GoesByWinograd({64, 3, 3, 32, 32, 3})) << "16 places for 9 results";
  EXPECT_TRUE(cpu::GoesByWinograd({4, 8, 8, 32, 32, 3})) << "64 patches";
  EXPECT_FALSE(cpu::GoesByWinograd({7, 6, 6, 32, 32, 3})) << "63 patches";
  EXPECT_FALSE(cpu::GoesByWinograd({2, 56, 56, 32, 64, 3, 2}));
  EXPECT_FALSE(cpu::GoesByWinograd({2, 56, 56, 32, 64, 1}));
  EXPECT_FALSE(cpu::GoesByWinograd({2, 56, 56, 16, 64, 3}));
  EXPECT_FALSE(cpu::GoesByWinograd({2, 56, 56, 64, 16, 3}));
  cpu::UseWinograd(false);
  EXPECT_FALSE(cpu::GoesByWinograd(usual));
}

TEST(ConvolutionOps, WhatTheyDoNotTakeIsComputedByOneDnn) {
  UseOwnConvolutions();
  torch::manual_seed(7);
  struct Case {
    int64_t inputs, outputs, kernel, stride, padding, groups;
    bool bias;
  };
  for (const Case& c : {Case{3, 64, 7, 2, 3, 1, false},  // a stem's input's gradient
                        {3, 40, 7, 2, 3, 1, false},
                        {64, 32, 1, 3, 0, 1, false},
                        {32, 32, 4, 2, 2, 1, false},
                        {32, 32, 3, 1, 0, 1, false},
                        {32, 32, 3, 1, 1, 32, false},
                        {32, 32, 3, 1, 1, 1, true},
                        {32, 40, 1, 1, 0, 1, false}}) {
    const Tensor x = Random({2, c.inputs, 9, 9}).requires_grad_();
    const Tensor w = Random({c.outputs, c.inputs / c.groups, c.kernel, c.kernel}).requires_grad_();
    const Tensor bias = c.bias ? torch::randn({c.outputs}).to(torch::kBFloat16) : Tensor();
    const Tensor x64 = Exact(x), w64 = Exact(w);
    const Tensor y = torch::conv2d(x, w, bias, c.stride, c.padding, 1, c.groups);
    const Tensor y64 = torch::conv2d(x64, w64, c.bias ? bias.to(torch::kFloat64) : Tensor(),
                                     c.stride, c.padding, 1, c.groups);
    EXPECT_LT(Distance(y.detach(), y64.detach()), 5e-3);
    const Tensor dy = Random(y.sizes());
    y.backward(dy);
    y64.backward(dy.to(torch::kFloat64));
    EXPECT_LT(Distance(x.grad(), x64.grad()), 5e-3);
    EXPECT_LT(Distance(w.grad(), w64.grad()), 5e-3);
  }
}

}  // namespace
}  // namespace tutti::device
