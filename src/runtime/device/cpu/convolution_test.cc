// The convolutions against libtorch's in fp64.
// Covers: convolution_ops.cc, bf16/kept_weights.cc, bf16/convolution_bf16.cc,
// bf16/convolution_of_images.cc, bf16/convolution_of_pixels.cc, bf16/weight_gradient_bf16.cc,
// bf16/weight_packing.cc, bf16/winograd_bf16.cc, bf16/winograd_weight_gradient_bf16.cc,
// fp32/convolution_fp32.cc, fp32/kernels.cc, fp32/packing.cc, fp32/weight_gradient_fp32.cc,
// fp32/window.cc, fp32/winograd_fp32.cc, fp32/winograd_weight_gradient_fp32.cc,
// bf16/convolution_scratch.h, bf16/convolution_tiles.h, bf16/pixel_pairs.h, bf16/product.h,
// bf16/product_shape.h, bf16/winograd_patches.h, fp32/patches.h.
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "base/machine/instruction_set.h"
#include "base/process/command.h"
#include "base/test_patience.h"
#include "runtime/device/cpu/bf16/amx.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/bf16/kept_weights.h"
#include "runtime/device/cpu/convolution_ops.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/device/cpu/fp32/kernels.h"

namespace tutti::device {
namespace {

using testing::ContainsRegex;
using torch::Tensor;

constexpr char kHoldsToLess[] = "TUTTI_CPU_CAPABILITY";

Tensor Random(torch::IntArrayRef size, torch::Dtype type = torch::kBFloat16) {
  return torch::randn(size).to(type).contiguous(torch::MemoryFormat::ChannelsLast);
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
std::vector<cpu::Convolution> Shapes() {
  return {{2, 56, 56, 64, 32, 1},    {3, 7, 7, 32, 96, 1},      {1, 1, 1, 32, 32, 1},
          {2, 11, 13, 64, 64, 1},    {2, 9, 9, 320, 64, 1},     {2, 56, 56, 32, 64, 3},
          {9, 7, 7, 64, 32, 3},      {3, 14, 14, 96, 64, 3},    {2, 5, 17, 32, 32, 3},
          {1, 1, 1, 32, 32, 3},      {1, 40, 3, 32, 32, 3},     {2, 10, 10, 160, 32, 3},
          {2, 56, 56, 64, 32, 1, 2}, {3, 7, 9, 32, 64, 1, 2},   {1, 1, 2, 32, 32, 1, 2},
          {2, 29, 28, 32, 64, 3, 2}, {3, 14, 15, 96, 32, 3, 2}, {1, 1, 1, 32, 32, 3, 2},
          {5, 2, 3, 32, 32, 3, 2},   {2, 64, 61, 3, 64, 7, 2},  {1, 5, 2, 3, 32, 7, 2},
          {3, 32, 31, 3, 32, 3, 1},  {2, 17, 17, 4, 32, 3, 2},  {2, 28, 28, 1, 32, 7, 1},
          {3, 32, 32, 16, 16, 3},    {2, 13, 61, 16, 16, 3},    {2, 31, 32, 16, 32, 3, 2},
          {3, 9, 8, 64, 16, 3, 2},   {1, 1, 1, 16, 16, 3},      {2, 32, 31, 3, 16, 3},
          {2, 11, 13, 16, 16, 1},    {2, 7, 9, 16, 64, 1, 2},   {3, 9, 9, 96, 16, 1},
          {2, 20, 21, 3, 16, 7, 2},  {5, 7, 8, 256, 288, 3},    {1, 12, 23, 32, 32, 3},
          {6, 14, 14, 224, 320, 3},  {1, 23, 24, 512, 512, 1}};
}
// Patches of 4x4 results, other kernels, channels by 16.
std::vector<cpu::Convolution> MoreShapesInFp32() {
  return {{4, 8, 8, 16, 16, 3},    {3, 13, 18, 48, 80, 3}, {2, 9, 8, 32, 48, 5},
          {2, 9, 8, 16, 32, 5, 2}, {1, 12, 12, 48, 80, 1}, {3, 28, 28, 128, 128, 3}};
}
std::string NameOf(const testing::TestParamInfo<cpu::Convolution>& shape) {
  const cpu::Convolution& c = shape.param;
  return std::to_string(c.images) + "x" + std::to_string(c.height) + "x" + std::to_string(c.width) +
         "of" + std::to_string(c.inputs) + "to" + std::to_string(c.outputs) + "by" +
         std::to_string(c.kernel) + "every" + std::to_string(c.stride);
}
INSTANTIATE_TEST_SUITE_P(Shapes, ConvolutionTest, testing::ValuesIn(Shapes()), NameOf);

class Fp32ConvolutionTest : public ConvolutionTest {};
INSTANTIATE_TEST_SUITE_P(Shapes, Fp32ConvolutionTest, testing::ValuesIn(Shapes()), NameOf);
INSTANTIATE_TEST_SUITE_P(More, Fp32ConvolutionTest, testing::ValuesIn(MoreShapesInFp32()), NameOf);

void ExpectTheFormula(const cpu::Convolution& c, torch::Dtype type, double bound) {
  const Tensor x =
      Random({c.images, c.inputs, c.height, c.width}, type).requires_grad_(!c.is_stem());
  const Tensor w = Random({c.outputs, c.inputs, c.kernel, c.kernel}, type).requires_grad_();
  const Tensor x64 = Exact(x), w64 = Exact(w);
  const Tensor y64 = torch::conv2d(x64, w64, {}, c.stride, c.kernel / 2);
  const Tensor dy = Random(y64.sizes(), type);
  y64.backward(dy.to(torch::kFloat64));
  const int before = at::get_num_threads();
  std::vector<Tensor> first;
  // With many threads some get nothing, or share both pixels and channels; tried where it takes no
  // time.
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
    if (type != torch::kFloat32) continue;
    const Tensor once = w.grad();
    w.mutable_grad().reset();
    torch::conv2d(x.detach(), w, {}, c.stride, c.kernel / 2).backward(dy);
    EXPECT_TRUE(torch::equal(w.grad(), once)) << threads << " threads, the second time";
    const std::vector<Tensor> results = {y.detach(), x.grad()};
    if (first.empty()) first = results;
    EXPECT_TRUE(torch::equal(results[0], first[0])) << threads << " threads change bits";
    if (c.is_stem()) continue;
    EXPECT_TRUE(torch::equal(results[1], first[1])) << threads << " threads change bits";
  }
  at::set_num_threads(before);
}

// A network that does not change packs its weights once; what it has not promised to keep is packed
// each time.
TEST(KeptWeights, ChangeNoBitAndAreMadeOnce) {
  for (const torch::Dtype type : {torch::kFloat32, torch::kBFloat16}) {
    for (const int64_t kernel : {1, 3, 7}) {
      const Tensor x = Random({4, kernel == 7 ? 3 : 64, 16, 16}, type);
      const auto channels_last = torch::MemoryFormat::ChannelsLast;
      const Tensor w = Random({64, x.size(1), kernel, kernel}, type).contiguous(channels_last);
      const auto convolve = [&] { return torch::conv2d(x, w, {}, 1, kernel / 2); };
      const Tensor once = convolve();
      cpu::KeptWeights kept({w.const_data_ptr()}), others({});
      {
        const cpu::KeptWeights::Use use(kept);
        EXPECT_TRUE(torch::equal(convolve(), once)) << type << " " << kernel;
        EXPECT_TRUE(torch::equal(convolve(), once)) << type << " " << kernel;
        const cpu::KeptWeights::Use instead(others);
        w.mul_(2);
        EXPECT_FALSE(torch::equal(convolve(), once)) << "they are not kept there";
      }
      w.div_(2);
      EXPECT_TRUE(torch::equal(convolve(), once));
    }
  }
}

TEST_P(ConvolutionTest, EqualsTheFormulaForwardAndBackwardWithAnyNumberOfThreads) {
  const absl::Cleanup restore = [] {
    cpu::LeaveAmxAlone(false);
    cpu::UseWinograd(false);
  };
  bool taken = false;
  for (bool alone : {false, true}) {
    cpu::LeaveAmxAlone(alone);
    if (alone == cpu::HasAmx()) continue;
    for (bool winograd : {false, true}) {
      cpu::UseWinograd(winograd);
      if (!cpu::Takes(GetParam())) continue;  // without AVX512-BF16, or a stem where there is AMX
      if (winograd && !cpu::GoesByWinograd(GetParam())) continue;
      // One rounding of bf16 is 1.7e-3 in this measure.
      ExpectTheFormula(GetParam(), torch::kBFloat16,
                       cpu::GoesByWinograd(GetParam()) ? 5e-3 : 2.5e-3);
      taken = true;
    }
  }
  if (!taken) GTEST_SKIP() << "this processor has no AVX512-BF16";
}

TEST_P(Fp32ConvolutionTest, EqualsTheFormulaWithAnyNumberOfThreadsAndEachInstructionSet) {
  const absl::Cleanup restore = [] { cpu::fp32::HoldTo(base::InstructionSet::kAvx512); };
  const cpu::fp32::Kernels* last = nullptr;
  for (auto set : {base::InstructionSet::kAvx2, base::InstructionSet::kAvx512}) {
    cpu::fp32::HoldTo(set);
    if (cpu::fp32::Best() == last) continue;
    last = cpu::fp32::Best();
    ASSERT_TRUE(cpu::fp32::CanCompute(GetParam()));
    ExpectTheFormula(GetParam(), torch::kFloat32, 5e-6);
  }
  if (last == nullptr) GTEST_SKIP() << "this processor has no AVX2";
}

TEST(ConvolutionInFp32, GoesByPatchesWhereThatIsWorthIt) {
  EXPECT_TRUE(cpu::fp32::GoesByPatches({2, 56, 56, 32, 64, 3}));
  EXPECT_TRUE(cpu::fp32::GoesByPatches({4, 8, 8, 16, 16, 3})) << "16 patches";
  EXPECT_TRUE(cpu::fp32::GoesByPatches({4, 6, 6, 16, 16, 3})) << "64 places for 36 results";
  EXPECT_FALSE(cpu::fp32::GoesByPatches({3, 8, 8, 16, 16, 3})) << "12 patches";
  EXPECT_FALSE(cpu::fp32::GoesByPatches({16, 5, 5, 16, 16, 3})) << "64 places for 25 results";
  EXPECT_FALSE(cpu::fp32::GoesByPatches({2, 56, 56, 32, 64, 3, 2}));
  EXPECT_FALSE(cpu::fp32::GoesByPatches({2, 56, 56, 32, 64, 5}));
  EXPECT_FALSE(cpu::fp32::GoesByPatches({2, 56, 56, 3, 64, 3})) << "a stem";
  const absl::Cleanup restore = [] { cpu::fp32::UsePatches(true); };
  cpu::fp32::UsePatches(false);
  EXPECT_FALSE(cpu::fp32::GoesByPatches({2, 56, 56, 32, 64, 3}));
}

// A variable that holds this process to fewer instructions leaves none, whatever the processor has.
TEST(Convolution, IsTakenAndGoesByWinogradOnlyWhereBf16IsNative) {
  const absl::Cleanup restore = [] {
    cpu::LeaveAmxAlone(false);
    cpu::UseWinograd(false);
  };
  cpu::LeaveAmxAlone(true);
  cpu::UseWinograd(true);
  const bool native = base::MayUseAvx512Bf16();
  EXPECT_FALSE(native && std::getenv(kHoldsToLess) != nullptr);
  const cpu::Convolution usual = {2, 56, 56, 32, 64, 3};
  EXPECT_EQ(cpu::Takes(usual), native);
  EXPECT_EQ(cpu::GoesByWinograd(usual), native);
  for (const cpu::Convolution& shape : Shapes()) {
    EXPECT_FALSE(!native && (cpu::Takes(shape) || cpu::GoesByWinograd(shape)));
  }
}

// It is read once in a process.
TEST(Convolution, IsNotTakenWhereAVariableForbidsBf16) {
  for (const char* const set : {"default", "avx2", "avx512"}) {
    base::ChildOptions options;
    options.arguments = {"/proc/self/exe", "--gtest_filter=Convolution.IsTakenAndGoesByWinograd*"};
    options.environment = base::CurrentEnvironment();
    options.environment[kHoldsToLess] = set;
    for (const char* const name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) {
      options.environment.erase(name);  // else it may be the other shard's
    }
    const auto result =
        base::RunCommand(options, "", base::Deadline::After(base::Patient(absl::Minutes(1))));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->exit.ok()) << set << ": " << result->out;
    EXPECT_TRUE(absl::StrContains(result->out, "[  PASSED  ] 1 test")) << result->out;
  }
}

TEST(Convolution, GoesByWinogradWhereThatIsWorthIt) {
  const absl::Cleanup restore = [] {
    cpu::LeaveAmxAlone(false);
    cpu::UseWinograd(false);
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

float* ValuesOf(const Tensor& tensor) { return tensor.data_ptr<float>(); }

// The result and both gradients of libtorch's function.
std::vector<Tensor> ByLibtorch(const cpu::Convolution& c, const Tensor& x, const Tensor& w,
                               const Tensor& dy) {
  const Tensor input = x.detach().requires_grad_(), weights = w.detach().requires_grad_();
  const Tensor y = torch::conv2d(input, weights, {}, c.stride, c.kernel / 2);
  y.backward(dy);
  return {y.detach(), input.grad(), weights.grad()};
}
// The same of ours, without libtorch's dispatcher.
std::vector<Tensor> ByOurs(const cpu::Convolution& c, const Tensor& x, const Tensor& w,
                           const Tensor& dy) {
  std::vector<Tensor> results = {torch::empty_like(dy), torch::empty_like(x), torch::empty_like(w)};
  const int threads = at::get_num_threads();
  cpu::fp32::Forward(c, ValuesOf(x), ValuesOf(w), ValuesOf(results[0]), threads);
  cpu::fp32::InputGradient(c, ValuesOf(dy), ValuesOf(w), ValuesOf(results[1]), threads);
  cpu::fp32::WeightGradient(c, ValuesOf(x), ValuesOf(dy), ValuesOf(results[2]), threads);
  return results;
}

TEST(ConvolutionOps, AreWhatLibtorchsDispatcherHasForTheCpu) {
  UseOwnConvolutions();
  for (const char* name :
       {"aten::mkldnn_convolution", "aten::_slow_conv2d_forward", "aten::convolution_backward"}) {
    const auto function = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    EXPECT_THAT(function.dumpComputedTable(),
                ContainsRegex("(^|\n)CPU: registered at [^\n]*/convolution_ops.cc:"))
        << name;
  }
}

// By their bits, which by patches are never oneDNN's. By windows some are: both sum channels one by
// one.
TEST(ConvolutionOps, LibtorchTakesOursInFp32) {
  const absl::Cleanup restore = [before = at::get_num_threads()] {
    at::set_num_threads(before);
    cpu::fp32::HoldTo(base::InstructionSet::kAvx512);
  };
  if (cpu::fp32::Best() == nullptr) GTEST_SKIP() << "this processor has no AVX2";
  UseOwnConvolutions();
  torch::manual_seed(8);
  // By patches, by windows, and 1x1 kernels over few images, of which libtorch asks another
  // function where it computes on one thread.
  for (const cpu::Convolution& c :
       {cpu::Convolution{2, 28, 28, 32, 64, 3}, cpu::Convolution{2, 28, 28, 32, 64, 3, 2},
        cpu::Convolution{1, 14, 14, 64, 32, 1}, cpu::Convolution{32, 14, 14, 64, 32, 1}}) {
    const Tensor x = Random({c.images, c.inputs, c.height, c.width}, torch::kFloat32);
    const Tensor w = Random({c.outputs, c.inputs, c.kernel, c.kernel}, torch::kFloat32);
    const Tensor dy = Random({c.images, c.outputs, c.out_height(), c.out_width()}, torch::kFloat32);
    for (const int threads : {1, 2}) {
      at::set_num_threads(threads);
      cpu::fp32::HoldTo(base::InstructionSet::kAvx512);
      const std::vector<Tensor> ours = ByOurs(c, x, w, dy), taken = ByLibtorch(c, x, w, dy);
      cpu::fp32::HoldTo(base::InstructionSet::kPlain);  // for which there are none of ours
      const std::vector<Tensor> onednns = ByLibtorch(c, x, w, dy);
      for (size_t i = 0; i < ours.size(); ++i) {
        EXPECT_TRUE(taken[i].equal(ours[i])) << c.kernel << " " << threads << " " << i;
        if (!cpu::fp32::GoesByPatches(c)) continue;
        EXPECT_FALSE(onednns[i].equal(ours[i])) << c.kernel << " " << threads << " " << i;
      }
    }
  }
}

// What libtorch does with convolutions that are none of ours.
void ExpectOneDnns(torch::Dtype type) {
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
    const Tensor x = Random({2, c.inputs, 9, 9}, type).requires_grad_();
    const Tensor w =
        Random({c.outputs, c.inputs / c.groups, c.kernel, c.kernel}, type).requires_grad_();
    const Tensor bias = c.bias ? torch::randn({c.outputs}).to(type) : Tensor();
    const Tensor x64 = Exact(x), w64 = Exact(w);
    const Tensor y = torch::conv2d(x, w, bias, c.stride, c.padding, 1, c.groups);
    const Tensor y64 = torch::conv2d(x64, w64, c.bias ? bias.to(torch::kFloat64) : Tensor(),
                                     c.stride, c.padding, 1, c.groups);
    EXPECT_LT(Distance(y.detach(), y64.detach()), 5e-3);
    const Tensor dy = Random(y.sizes(), type);
    y.backward(dy);
    y64.backward(dy.to(torch::kFloat64));
    EXPECT_LT(Distance(x.grad(), x64.grad()), 5e-3);
    EXPECT_LT(Distance(w.grad(), w64.grad()), 5e-3);
  }
}

TEST(ConvolutionOps, WhatTheyDoNotTakeIsComputedByOneDnn) {
  UseOwnConvolutions();
  torch::manual_seed(7);
  for (auto type : {torch::kBFloat16, torch::kFloat32}) ExpectOneDnns(type);
}

}  // namespace
}  // namespace tutti::device
