#include "runtime/device/cpu/convolution_ops.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_slow_conv2d_forward_native.h>
#include <ATen/ops/convolution_backward_native.h>
#include <ATen/ops/mkldnn_convolution_native.h>
#include <c10/util/Exception.h>
#include <torch/library.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <tuple>

#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"

namespace tutti::device {
namespace {

using at::IntArrayRef;

// How a convolution moves over its input.
struct Movement {
  IntArrayRef stride, padding, dilation;
  int64_t groups;
};

bool AllAre(IntArrayRef values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

// The functions of one element type.
template <typename Element>
struct Functions {
  bool (*takes)(const cpu::Convolution&);
  void (*forward)(const cpu::Convolution&, const Element* x, const Element* w, Element* y, int);
  void (*input_gradient)(const cpu::Convolution&, const Element* dy, const Element* w, Element* dx,
                         int);
  void (*weight_gradient)(const cpu::Convolution&, const Element* x, const Element* dy, Element* dw,
                          int);
};
constexpr Functions<uint16_t> kBf16 = {&cpu::Takes, &cpu::ConvolutionForward,
                                       &cpu::ConvolutionInputGradient,
                                       &cpu::ConvolutionWeightGradient};
constexpr Functions<float> kFp32 = {&cpu::fp32::CanCompute, &cpu::fp32::Forward,
                                    &cpu::fp32::InputGradient, &cpu::fp32::WeightGradient};

// `body` with the functions for tensors like this one: of bf16, or else of fp32.
template <typename Body>
void WithFunctionsFor(const at::Tensor& tensor, const Body& body) {
  tensor.scalar_type() == at::kBFloat16 ? body(kBf16) : body(kFp32);
}

template <typename Element>
Element* ValuesOf(const Functions<Element>&, const at::Tensor& tensor) {
  return static_cast<Element*>(tensor.mutable_data_ptr());
}

at::Tensor InChannelsLast(const at::Tensor& tensor) {
  return tensor.contiguous(at::MemoryFormat::ChannelsLast);
}

// Whether it is the same number in both directions.
bool IsSquare(IntArrayRef values) { return AllAre(values, values.empty() ? 0 : values[0]); }

// None where oneDNN is to do it.
std::optional<cpu::Convolution> ShapeFor(const at::Tensor& x, const at::Tensor& w,
                                         const Movement& movement) {
  if (x.dim() != 4 || w.dim() != 4 || w.size(2) != w.size(3) || !x.is_cpu() || x.is_mkldnn() ||
      (x.scalar_type() != at::kBFloat16 && x.scalar_type() != at::kFloat) ||
      w.scalar_type() != x.scalar_type() || w.is_mkldnn() ||
      !x.is_contiguous(at::MemoryFormat::ChannelsLast) || movement.groups != 1 ||
      !IsSquare(movement.stride) || !AllAre(movement.dilation, 1) || w.size(2) % 2 == 0 ||
      !AllAre(movement.padding, w.size(2) / 2)) {
    return std::nullopt;
  }
  const cpu::Convolution shape = {.images = x.size(0),
                                  .height = x.size(2),
                                  .width = x.size(3),
                                  .inputs = x.size(1),
                                  .outputs = w.size(0),
                                  .kernel = w.size(2),
                                  .stride = movement.stride[0]};
  bool takes = false;
  WithFunctionsFor(x, [&](const auto& functions) { takes = functions.takes(shape); });
  return takes ? std::optional(shape) : std::nullopt;
}

at::Tensor OwnForward(const cpu::Convolution& shape, const at::Tensor& x, const at::Tensor& w) {
  at::Tensor y = at::empty({x.size(0), w.size(0), shape.out_height(), shape.out_width()},
                           x.options(), at::MemoryFormat::ChannelsLast);
  const at::Tensor weights = InChannelsLast(w);
  WithFunctionsFor(x, [&](const auto& of) {
    of.forward(shape, ValuesOf(of, x), ValuesOf(of, weights), ValuesOf(of, y),
               at::get_num_threads());
  });
  return y;
}

at::Tensor Forward(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias,
                   IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
  const auto shape = ShapeFor(x, w, {stride, padding, dilation, groups});
  if (shape && !(bias && bias->defined())) return OwnForward(*shape, x, w);
  return at::native::mkldnn_convolution(x, w, bias, padding, stride, dilation, groups);
}

// What libtorch takes for fp32 kernels of 1x1 over few images by one thread.
at::Tensor ForwardOfFew(const at::Tensor& x, const at::Tensor& w, IntArrayRef kernel,
                        const std::optional<at::Tensor>& bias, IntArrayRef stride,
                        IntArrayRef padding) {
  constexpr int64_t kNoDilation[] = {1, 1};
  const auto shape = ShapeFor(x, w, {stride, padding, kNoDilation, 1});
  if (shape && !(bias && bias->defined())) return OwnForward(*shape, x, w);
  return at::native::slow_conv2d_forward_cpu(x, w, kernel, bias, stride, padding);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Backward(const at::Tensor& dy, const at::Tensor& x,
                                                        const at::Tensor& w,
                                                        at::OptionalIntArrayRef bias_sizes,
                                                        IntArrayRef stride, IntArrayRef padding,
                                                        IntArrayRef dilation, bool transposed,
                                                        IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> wanted) {
  const auto shape = ShapeFor(x, w, {stride, padding, dilation, groups});
  if (!shape || transposed || wanted[2] || dy.scalar_type() != x.scalar_type() ||
      (wanted[0] && shape->is_stem())) {
    return at::native::convolution_backward(dy, x, w, bias_sizes, stride, padding, dilation,
                                            transposed, output_padding, groups, wanted);
  }
  const at::Tensor from = InChannelsLast(dy), weights = InChannelsLast(w);
  at::Tensor dx, dw;
  if (wanted[0]) dx = at::empty_like(x);
  if (wanted[1]) dw = at::empty(w.sizes(), w.options(), at::MemoryFormat::ChannelsLast);
  const int threads = at::get_num_threads();
  WithFunctionsFor(x, [&](const auto& of) {
    if (wanted[0]) {
      of.input_gradient(*shape, ValuesOf(of, from), ValuesOf(of, weights), ValuesOf(of, dx),
                        threads);
    }
    if (wanted[1]) {
      of.weight_gradient(*shape, ValuesOf(of, x), ValuesOf(of, from), ValuesOf(of, dw), threads);
    }
  });
  return {dx, dw, at::Tensor()};
}

// libtorch warns of each kernel that takes another one's place, which is meant here.
class NoWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

}  // namespace

void UseOwnConvolutions() {
  static std::once_flag once;
  std::call_once(once, [] {
    NoWarnings none;
    const c10::WarningUtils::WarningHandlerGuard guard(&none);
    static auto* const library =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    library->impl("mkldnn_convolution", TORCH_FN(Forward));
    library->impl("_slow_conv2d_forward", TORCH_FN(ForwardOfFew));
    library->impl("convolution_backward", TORCH_FN(Backward));
  });
}

}  // namespace tutti::device
