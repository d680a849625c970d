// Packs weights as product.h's tiles read them: [block of 32 results][tap][depth / 2][32][2], or
// blocks of 16 where there are no more.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/device/cpu/bf16/convolution_bf16.h"

namespace tutti::device::cpu {

// Returns how many values of a pixel, and so of a tap, forward's products go over.
inline int64_t ForwardDepth(const Convolution& c) {
  return c.is_stem() ? (c.kernel * c.inputs + 1) / 2 * 2 : c.inputs;
}
inline int64_t ForwardTaps(const Convolution& c) {
  return c.is_stem() ? c.kernel : c.kernel * c.kernel;
}

// Returns weights that are valid until this thread's next call of either. `w` is [outputs, kernel,
// kernel, inputs].
const uint16_t* PackForward(const Convolution& c, const uint16_t* w, int threads);
// Packs for the input's gradient: results are inputs, the depth is that of outputs; taps in
// `order`.
const uint16_t* PackBackward(const Convolution& c, std::span<const int> order, const uint16_t* w,
                             int threads);

}  // namespace tutti::device::cpu
