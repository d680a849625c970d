#include "runtime/device/cpu/fp32/window.h"

#include <algorithm>

namespace tutti::device::cpu::fp32 {
namespace {

// x's pixel p is seen by dy's pixel q with tap t where p = q stride + t - border.
Side InputGradientSide(const Convolution& c, int64_t remainder) {
  Side side = {0, {}};
  for (int64_t tap = c.kernel - 1; tap >= 0; --tap) {
    const int64_t distance = remainder + c.border() - tap;
    if (distance % c.stride != 0) continue;
    if (side.taps.empty()) side.first = distance / c.stride;
    side.taps.push_back(static_cast<int>(tap));
  }
  return side;
}

int64_t CountOf(int64_t size, int64_t remainder, int64_t stride) {
  return (size - remainder + stride - 1) / stride;
}

}  // namespace

Window ForwardWindow(const Convolution& c) {
  Side side = {-c.border(), {}};
  for (int64_t tap = 0; tap < c.kernel; ++tap) side.taps.push_back(static_cast<int>(tap));
  return {.images = c.images,
          .height = c.height,
          .width = c.width,
          .depth = c.inputs,
          .rows = c.out_height(),
          .columns = c.out_width(),
          .step = c.stride,
          .tall = side,
          .wide = side};
}

Window InputGradientWindow(const Convolution& c, int64_t row, int64_t column) {
  return {.images = c.images,
          .height = c.out_height(),
          .width = c.out_width(),
          .depth = c.outputs,
          .rows = CountOf(c.height, row, c.stride),
          .columns = CountOf(c.width, column, c.stride),
          .step = 1,
          .tall = InputGradientSide(c, row),
          .wide = InputGradientSide(c, column)};
}

void GatherRow(const Window& w, const float* source, const ResultPlace& place, int64_t row,
               float* to) {
  const int64_t at = place.row * w.step + w.tall.first + row;
  const int64_t left = place.column * w.step + w.wide.first, right = left + w.wide.size();
  float* const end = to + w.wide.size() * w.depth;
  if (at < 0 || at >= w.height || right <= 0 || left >= w.width) {
    std::fill(to, end, 0.0f);
    return;
  }
  const int64_t first = std::max<int64_t>(left, 0), last = std::min(right, w.width);
  const float* const from = source + ((place.image * w.height + at) * w.width + first) * w.depth;
  to = std::fill_n(to, (first - left) * w.depth, 0.0f);
  to = std::copy_n(from, (last - first) * w.depth, to);
  std::fill(to, end, 0.0f);
}

}  // namespace tutti::device::cpu::fp32
