#include "runtime/device/cpu/bf16/weight_packing.h"

#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/bf16/kept_weights.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/bf16/convolution_tiles.h"

namespace tutti::device::cpu {
namespace {

// Packs the few weights of a stem, or of a layer of 16 channels. A stem's tap is a row of its
// kernel; if that has an odd number of values, a zero follows.
void PackFew(const Convolution& c, const uint16_t* w, uint16_t* to) {
  const int64_t taps = ForwardTaps(c), depth = ForwardDepth(c), block = BlockOf(c.outputs);
  const int64_t values = c.is_stem() ? c.kernel * c.inputs : c.inputs;
  for (int64_t output = 0; output < c.outputs; ++output) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t k = 0; k < depth; ++k) {
        const int64_t pair = (output / block * taps + tap) * depth / 2 + k / 2;
        to[(pair * block + output % block) * 2 + k % 2] =
            k < values ? w[(output * taps + tap) * values + k] : uint16_t{0};
      }
    }
  }
}

// 32 rows, `pitch` apart, of 32 values. By way of a copy: rows are often a multiple of 4 KiB apart,
// of which the caches hold only a few.
void PackSquare(const uint16_t* from, int64_t pitch, uint16_t* to) {
  alignas(64) uint16_t rows[kBlock][kBlock];
  for (int64_t row = 0; row < kBlock; ++row) std::copy_n(from + row * pitch, kBlock, rows[row]);
  const __m512i each =
      _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 4);
  for (int64_t k = 0; k < kBlock; k += 2, to += 2 * kBlock) {
    _mm512_storeu_si512(to, _mm512_i32gather_epi32(each, &rows[0][k], 4));
    _mm512_storeu_si512(to + kBlock, _mm512_i32gather_epi32(each, &rows[16][k], 4));
  }
}

}  // namespace

const uint16_t* PackForward(const Convolution& c, const uint16_t* w, int threads) {
  static thread_local Scratch<uint16_t> scratch;
  const int64_t depth = ForwardTaps(c) * ForwardDepth(c);
  return KeptWeights::Of(w, 0, c.outputs * depth, scratch, [&](uint16_t* to) {
    if (c.is_stem() || c.inputs < kBlock || c.outputs < kBlock) return PackFew(c, w, to);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t block = 0; block < c.outputs / kBlock; ++block) {
      for (int64_t k = 0; k < depth; k += kBlock) {
        PackSquare(w + block * kBlock * depth + k, depth, to + (block * depth + k) * kBlock);
      }
    }
  });
}

const uint16_t* PackBackward(const Convolution& c, std::span<const int> order, const uint16_t* w,
                             int threads) {
  const auto taps = static_cast<int64_t>(order.size());
  const int64_t row = taps * c.inputs, width = BlockOf(c.inputs);
  static thread_local Scratch<uint16_t> scratch;
  uint16_t* const to = scratch.Of(c.outputs * row);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < c.inputs / width; ++block) {
    uint16_t* at = to + block * width * taps * c.outputs;
    for (const int tap : order) {
      const uint16_t* from = w + tap * c.inputs + block * width;
      for (int64_t k = 0; k < c.outputs; k += 2, from += 2 * row, at += 2 * width) {
        if (width < kBlock) {
          _mm512_storeu_si512(at, InterleaveNarrow(from, from + row));
          continue;
        }
        __m512i first, second;
        Interleave(from, from + row, first, second);
        _mm512_storeu_si512(at, first);
        _mm512_storeu_si512(at + kBlock, second);
      }
    }
  }
  return to;
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#else

namespace tutti::device::cpu {

const uint16_t* PackForward(const Convolution&, const uint16_t*, int) { return nullptr; }
const uint16_t* PackBackward(const Convolution&, std::span<const int>, const uint16_t*, int) {
  return nullptr;
}

}  // namespace tutti::device::cpu
#endif
