#include "runtime/device/cpu/fp32/packing.h"

#include <algorithm>

namespace tutti::device::cpu::fp32 {
namespace {

// `width` rows, `pitch` apart, of `depth` values. By way of a copy of a few columns: rows are often
// a multiple of 4 KiB apart, of which the caches hold only a few.
void TurnRound(const float* from, int64_t pitch, int64_t depth, int64_t width, float* to) {
  constexpr int64_t kColumns = 16, kMostRows = 32;
  float few[kMostRows][kColumns];
  for (int64_t first = 0; first < depth; first += kColumns) {
    const int64_t columns = std::min(kColumns, depth - first);
    for (int64_t row = 0; row < width; ++row) {
      std::copy_n(from + row * pitch + first, columns, few[row]);
    }
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = 0; row < width; ++row) *to++ = few[row][column];
    }
  }
}

}  // namespace

void PackForward(const Kernels& kernels, const Convolution& c, const float* w, float* to,
                 int threads) {
  const int64_t depth = c.kernel * c.kernel * c.inputs, width = BlockOf(kernels, c.outputs);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < c.outputs / width; ++block) {
    TurnRound(w + block * width * depth, depth, depth, width, to + block * width * depth);
  }
}

void PackInputGradient(const Kernels& kernels, const Convolution& c, const Window& window,
                       const float* w, float* to, int threads) {
  const int64_t row = c.kernel * c.kernel * c.inputs, width = BlockOf(kernels, c.inputs);
  const int64_t of_block = window.values() * width;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < c.inputs / width; ++block) {
    float* at = to + block * of_block;
    for (const int high : window.tall.taps) {
      for (const int wide : window.wide.taps) {
        const float* const from = w + (high * c.kernel + wide) * c.inputs + block * width;
        for (int64_t output = 0; output < c.outputs; ++output) {
          at = std::copy_n(from + output * row, width, at);
        }
      }
    }
  }
}

}  // namespace tutti::device::cpu::fp32
