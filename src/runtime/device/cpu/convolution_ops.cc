#include "runtime/device/cpu/convolution_ops.h"

#include <ATen/Parallel.h>
#include <ATen/ops/convolution_backward_native.h>
#include <ATen/ops/mkldnn_convolution_native.h>
#include <torch/library.h>
#include <torch/types.h>

#include <array>
#include <mutex>
#include <optional>
#include <tuple>

#include "runtime/device/cpu/convolution.h"

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

uint16_t* ValuesOf(const at::Tensor& tensor) {
  return static_cast<uint16_t*>(tensor.mutable_data_ptr());
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
      x.scalar_type() != at::kBFloat16 || w.scalar_type() != at::kBFloat16 || w.is_mkldnn() ||
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
  return cpu::Takes(shape) ? std::optional(shape) : std::nullopt;
}

at::Tensor Forward(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias,
                   IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
  const auto shape = ShapeFor(x, w, {stride, padding, dilation, groups});
  if (!shape || (bias && bias->defined())) {
    return at::native::mkldnn_convolution(x, w, bias, padding, stride, dilation, groups);
  }
  at::Tensor y = at::empty({x.size(0), w.size(0), shape->out_height(), shape->out_width()},
                           x.options(), at::MemoryFormat::ChannelsLast);
  cpu::ConvolutionForward(*shape, ValuesOf(x), ValuesOf(InChannelsLast(w)), ValuesOf(y),
                          at::get_num_threads());
  return y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Backward(const at::Tensor& dy, const at::Tensor& x,
                                                        const at::Tensor& w,
                                                        at::OptionalIntArrayRef bias_sizes,
                                                        IntArrayRef stride, IntArrayRef padding,
                                                        IntArrayRef dilation, bool transposed,
                                                        IntArrayRef output_padding, int64_t groups,
                                                        std::array<bool, 3> wanted) {
  const auto shape = ShapeFor(x, w, {stride, padding, dilation, groups});
  if (!shape || transposed || wanted[2] || dy.scalar_type() != at::kBFloat16 ||
      (wanted[0] && shape->is_stem())) {
    return at::native::convolution_backward(dy, x, w, bias_sizes, stride, padding, dilation,
                                            transposed, output_padding, groups, wanted);
  }
  const at::Tensor from = InChannelsLast(dy);
  at::Tensor dx, dw;
  if (wanted[0]) {
    dx = at::empty_like(x);
    cpu::ConvolutionInputGradient(*shape, ValuesOf(from), ValuesOf(InChannelsLast(w)), ValuesOf(dx),
                                  at::get_num_threads());
  }
  if (wanted[1]) {
    dw = at::empty(w.sizes(), w.options(), at::MemoryFormat::ChannelsLast);
    cpu::ConvolutionWeightGradient(*shape, ValuesOf(x), ValuesOf(from), ValuesOf(dw),
                                   at::get_num_threads());
  }
  return {dx, dw, at::Tensor()};
}

}  // namespace

void UseOwnConvolutions() {
  static std::once_flag once;
  std::call_once(once, [] {
    static auto* const library =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    library->impl("mkldnn_convolution", TORCH_FN(Forward));
    library->impl("convolution_backward", TORCH_FN(Backward));
  });
}

}  // namespace tutti::device
