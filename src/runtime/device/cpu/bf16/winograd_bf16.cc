#include <algorithm>
#include <array>

#include "runtime/device/cpu/bf16/convolution_kinds.h"
#include "runtime/device/cpu/bf16/convolution_scratch.h"
#include "runtime/device/cpu/bf16/weight_packing.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/bf16/product.h"
#include "runtime/device/cpu/bf16/winograd_patches.h"

namespace tutti::device::cpu {
namespace {

// The elements of a part's transformed patches that the second cache holds.
constexpr int64_t kPatchElements = 320 << 10;

// A^T m A: the four results, row by row.
inline __attribute__((always_inline)) void TransformOutput(const Patch& m, __m512 (&y)[4]) {
  __m512 rows[2][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[0][i] = _mm512_add_ps(_mm512_add_ps(m[i], m[4 + i]), m[8 + i]);
    rows[1][i] = _mm512_sub_ps(_mm512_sub_ps(m[4 + i], m[8 + i]), m[12 + i]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    y[2 * i] = _mm512_add_ps(_mm512_add_ps(rows[i][0], rows[i][1]), rows[i][2]);
    y[2 * i + 1] = _mm512_sub_ps(_mm512_sub_ps(rows[i][1], rows[i][2]), rows[i][3]);
  }
}

// G g G^T: the kernel's nine taps, in the first places, to sixteen.
inline __attribute__((always_inline)) void TransformKernel(const __m512 (&g)[9], Patch& u) {
  const __m512 half = _mm512_set1_ps(0.5F);
  const auto line = [&](__m512 a, __m512 b, __m512 c, __m512& first, __m512& second, __m512& third,
                        __m512& last) {
    const __m512 ends = _mm512_mul_ps(_mm512_add_ps(a, c), half);
    first = a;
    second = _mm512_fmadd_ps(b, half, ends);
    third = _mm512_fnmadd_ps(b, half, ends);
    last = c;
  };
  __m512 rows[4][3];
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    line(g[i], g[3 + i], g[6 + i], rows[0][i], rows[1][i], rows[2][i], rows[3][i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    line(rows[i][0], rows[i][1], rows[i][2], u[4 * i], u[4 * i + 1], u[4 * i + 2], u[4 * i + 3]);
  }
}

// From one place to the next: of a block's weights, of a part's sums and patches.
int64_t KernelElements(int64_t depth) { return depth * kBlock + kBytesApart / 2; }
int64_t PlaceSums(int64_t count) { return count * kBlock + kBytesApart / 4; }
int64_t PlaceElements(const Plane& plane, int64_t count) {
  return count * plane.depth + kBytesApart / 2;
}

// Transforms the patches [first, first + count) to `to` [place][patch][depth]. Of each 32 channels
// the even ones come first, then the odd ones.
void TransformInputs(const Plane& plane, const uint16_t* x, int64_t first, int64_t count,
                     uint16_t* to) {
  const int64_t of_place = PlaceElements(plane, count);
  for (int64_t i = 0; i < count; ++i, to += plane.depth) {
    const PatchPixels from = PixelsOf(plane, PlaceOf(plane, first + i), x);
    for (int64_t channel = 0; channel < plane.depth; channel += kBlock) {
      for (int64_t half = 0; half < 2; ++half) {
        Patch patch;
        LoadInput(from, channel, half, patch);
#pragma GCC unroll 16
        for (int64_t at = 0; at < kPlaces; ++at) {
          _mm256_storeu_si256(
              reinterpret_cast<__m256i*>(to + at * of_place + channel + half * kVector),
              (__m256i)_mm512_cvtneps_pbh(patch[at]));
        }
      }
    }
  }
}

// The results of a block, from `sums` [place][patch][32].
void TransformOutputs(const Plane& plane, const float* sums, int64_t first, int64_t count,
                      int64_t block, uint16_t* y) {
  for (int64_t i = 0; i < count; ++i, sums += kBlock) {
    const Place place = PlaceOf(plane, first + i);
    uint16_t* const to =
        y +
        ((place.image * plane.height + place.row) * plane.width + place.column) * plane.outputs +
        block * kBlock;
    const bool below = place.row + 1 < plane.height, beside = place.column + 1 < plane.width;
    for (int64_t half = 0; half < 2; ++half) {
      Patch patch;
#pragma GCC unroll 16
      for (int64_t at = 0; at < kPlaces; ++at) {
        patch[at] = _mm512_loadu_ps(sums + at * PlaceSums(count) + half * kVector);
      }
      __m512 results[4];
      TransformOutput(patch, results);
      const auto store = [&](int64_t which, uint16_t* at) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + half * kVector),
                            (__m256i)_mm512_cvtneps_pbh(results[which]));
      };
      store(0, to);
      if (beside) store(1, to + plane.outputs);
      if (below) store(2, to + plane.width * plane.outputs);
      if (below && beside) store(3, to + (plane.width + 1) * plane.outputs);
    }
  }
}

// One block's weights, [9][depth / 2][32][2], to [place][depth / 2][32][2] with the channels of a
// pair as TransformInputs has them.
void TransformKernels(int64_t depth, const uint16_t* from, uint16_t* to) {
  const int64_t of_tap = depth * kBlock, pair = 2 * kBlock;
  for (int64_t channel = 0; channel < depth; channel += kBlock, from += kBlock * kBlock) {
    for (int64_t four = 0; four < 8; ++four) {  // channels of 32
      for (int64_t vector = 0; vector < 2; ++vector) {
        const uint16_t* const at = from + 2 * four * pair + vector * 2 * kVector;
        for (int64_t half = 0; half < 2; ++half) {
          __m512 taps[2][9];
#pragma GCC unroll 9
          for (int64_t tap = 0; tap < 9; ++tap) {
            for (int64_t which = 0; which < 2; ++which) {
              const __m512i words = _mm512_loadu_si512(at + tap * of_tap + which * pair);
              taps[which][tap] = HalfOf(words, half);
            }
          }
          Patch first, second;
          TransformKernel(taps[0], first);
          TransformKernel(taps[1], second);
          uint16_t* const packed =
              to + channel * kBlock + (half * 8 + four) * pair + vector * 2 * kVector;
          for (int64_t place = 0; place < kPlaces; ++place) {
            _mm512_storeu_si512(packed + place * KernelElements(depth),
                                Join(first[place], second[place]));
          }
        }
      }
    }
  }
}

// `count` patches of one place, by a block's weights.
void MultiplyPlace(int64_t depth, const uint16_t* x, const uint16_t* weights, int64_t count,
                   float* sums, Prefetch& prefetch) {
  const int64_t parts = (count + kMostRows - 1) / kMostRows;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t at = count * i / parts, rows = count * (i + 1) / parts - at;
    kSumTiles[static_cast<size_t>(rows - 1)](depth, x + at * depth, weights, sums + at * kBlock);
    prefetch.Fetch();
  }
}

// `packed` as weight_packing.h has it, the nine taps in the order of their pixels.
void MultiplyPatches(const Plane& plane, const uint16_t* x, const uint16_t* packed, uint16_t* y,
                     int threads) {
  static thread_local Scratch<uint16_t> kernels;
  const int64_t blocks = plane.outputs / kBlock, depth = plane.depth;
  const int64_t of_block = kPlaces * KernelElements(depth);
  uint16_t* const weights = kernels.Of(blocks * of_block);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    TransformKernels(depth, packed + block * 9 * depth * kBlock, weights + block * of_block);
  }
  const int64_t tiles = (plane.patches() + kMostRows - 1) / kMostRows;
  const int64_t largest = std::clamp<int64_t>(kPatchElements / (kPlaces * depth * kMostRows), 2, 8);
  const int64_t parts = PartsOf(tiles, largest, threads);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    static thread_local Scratch<uint16_t> scratch;
    static thread_local Scratch<float> sum_scratch;
    const int64_t first = tiles * part / parts * kMostRows;
    const int64_t count = std::min(plane.patches(), tiles * (part + 1) / parts * kMostRows) - first;
    uint16_t* const patches = scratch.Of(kPlaces * PlaceElements(plane, count));
    float* const sums = sum_scratch.Of(kPlaces * PlaceSums(count));
    TransformInputs(plane, x, first, count, patches);
    const int64_t next = first + count, after = std::min(plane.patches(), next + count);
    Prefetch prefetch(x + plane.ElementsBefore(next, depth), x + plane.ElementsBefore(after, depth),
                      blocks * kPlaces * ((count + kMostRows - 1) / kMostRows));
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t place = 0; place < kPlaces; ++place) {
        MultiplyPlace(depth, patches + place * PlaceElements(plane, count),
                      weights + block * of_block + place * KernelElements(depth), count,
                      sums + place * PlaceSums(count), prefetch);
      }
      TransformOutputs(plane, sums, first, count, block, y);
    }
  }
}

}  // namespace

void WinogradForward(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads) {
  MultiplyPatches({c.images, c.height, c.width, c.inputs, c.outputs}, x, PackForward(c, w, threads),
                  y, threads);
}

void WinogradInputGradient(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads) {
  constexpr int kTurned[] = {8, 7, 6, 5, 4, 3, 2, 1, 0};
  MultiplyPatches({c.images, c.height, c.width, c.outputs, c.inputs}, dy,
                  PackBackward(c, kTurned, w, threads), dx, threads);
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#endif
