// Computes max-pooling 3x3 with stride 2 and a padding of 1 over channels-last activations in fp32
// or bf16, as in the stem of a residual network. No torch here. Thread-safe; see batch_norm_cpu.h
// about `threads`.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/vector/lanes.h"

namespace tutti::device::cpu {

struct Pooling {
  int64_t images, height, width;  // of the input
  int64_t channels;               // a multiple of 32
  int64_t out_height() const { return (height + 1) / 2; }
  int64_t out_width() const { return (width + 1) / 2; }
};

// Writes y and `taken` (a byte for each element of y, in an order of its own): which of the nine
// was the largest, the first of equals; a NaN is larger than anything.
template <Element T>
void MaxPoolForward(const Pooling& shape, const T* x, T* y, uint8_t* taken, int threads);
// Writes every element of dx once, from the windows that it lies in.
template <Element T>
void MaxPoolBackward(const Pooling& shape, const T* dy, const uint8_t* taken, T* dx, int threads);

}  // namespace tutti::device::cpu
