#include <algorithm>
#include <array>

#include "runtime/device/cpu/bf16/convolution_kinds.h"
#include "runtime/device/cpu/bf16/convolution_scratch.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "runtime/device/cpu/bf16/winograd_patches.h"

// For each place of a patch, a product of x's patches and the results' gradients, both transformed,
// summed over all patches; the sums are transformed to the nine taps. Patches come by pairs, as
// pixels do in weight_gradient_bf16.cc; of 32 channels the even ones come first, then the odd ones.
namespace tutti::device::cpu {
namespace {

constexpr int64_t kTileInputs = 8;
// The pairs that are laid out together: the first cache holds so many of a block of 32 outputs.
constexpr int64_t kPairsOfChunk = 128;
// The most sums, in elements, that are kept once for each thread.
constexpr int64_t kLargestSums = int64_t{1} << 20;

// A dy A^T, of a gradient's 2x2 results.
inline __attribute__((always_inline)) void TransformGradient(const __m512 (&dy)[4], Patch& to) {
  const __m512 zero = _mm512_setzero_ps();
  __m512 rows[4][2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    rows[0][i] = dy[i];
    rows[1][i] = _mm512_add_ps(dy[i], dy[2 + i]);
    rows[2][i] = _mm512_sub_ps(dy[i], dy[2 + i]);
    rows[3][i] = _mm512_sub_ps(zero, dy[2 + i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    to[4 * i] = rows[i][0];
    to[4 * i + 1] = _mm512_add_ps(rows[i][0], rows[i][1]);
    to[4 * i + 2] = _mm512_sub_ps(rows[i][0], rows[i][1]);
    to[4 * i + 3] = _mm512_sub_ps(zero, rows[i][1]);
  }
}

// G^T s G: the nine taps.
inline __attribute__((always_inline)) void TransformSums(const Patch& s, __m512 (&taps)[9]) {
  const __m512 half = _mm512_set1_ps(0.5F);
  const auto line = [&](__m512 a, __m512 b, __m512 c, __m512 d, __m512& first, __m512& second,
                        __m512& last) {
    const __m512 sum = _mm512_mul_ps(_mm512_add_ps(b, c), half);
    first = _mm512_add_ps(a, sum);
    second = _mm512_mul_ps(_mm512_sub_ps(b, c), half);
    last = _mm512_add_ps(sum, d);
  };
  __m512 rows[3][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    line(s[i], s[4 + i], s[8 + i], s[12 + i], rows[0][i], rows[1][i], rows[2][i]);
  }
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    line(rows[i][0], rows[i][1], rows[i][2], rows[i][3], taps[3 * i], taps[3 * i + 1],
         taps[3 * i + 2]);
  }
}

// The gradients of a patch's results, zeros where there are none.
using ResultGradients = std::array<const uint16_t*, 4>;
ResultGradients GradientsOf(const Plane& plane, const Place& place, const uint16_t* dy) {
  ResultGradients from;
  for (int64_t at = 0; at < 4; ++at) {
    const int64_t row = place.row + at / 2, column = place.column + at % 2;
    const bool inside = row < plane.height && column < plane.width;
    from[static_cast<size_t>(at)] =
        inside ? dy + ((place.image * plane.height + row) * plane.width + column) * plane.outputs
               : kZeros;
  }
  return from;
}
inline __attribute__((always_inline)) void LoadGradient(const ResultGradients& from,
                                                        int64_t channel, int64_t half,
                                                        Patch& patch) {
  __m512 values[4];
#pragma GCC unroll 4
  for (size_t at = 0; at < 4; ++at) {
    values[at] = HalfOf(_mm512_loadu_si512(from[at] + channel), half);
  }
  TransformGradient(values, patch);
}

// From one place to the next.
int64_t PlaceWords(int64_t channels, int64_t pairs) { return channels * pairs + kBytesApart / 4; }

// `load`(which patch, its first channel, half, patch) for two patches and channels [first, last),
// as words of both, to `to` [place][panel of 16 channels][pair][16], for pair 0.
template <typename Load>
void StorePatches(int64_t first, int64_t last, int64_t pairs, uint32_t* to, const Load& load) {
  const int64_t of_place = PlaceWords(last - first, pairs);
  for (int64_t channel = first; channel < last; channel += kBlock) {
    for (int64_t half = 0; half < 2; ++half, to += pairs * kVector) {
      __m256i lower[kPlaces];
      Patch patch;
      load(0, channel, half, patch);
#pragma GCC unroll 16
      for (int64_t at = 0; at < kPlaces; ++at) {
        lower[at] = (__m256i)_mm512_cvtneps_pbh(patch[at]);
      }
      load(1, channel, half, patch);
#pragma GCC unroll 16
      for (int64_t at = 0; at < kPlaces; ++at) {
        const __m512i upper = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(patch[at]));
        _mm512_storeu_si512(to + at * of_place, _mm512_or_si512(_mm512_cvtepu16_epi32(lower[at]),
                                                                _mm512_slli_epi32(upper, 16)));
      }
    }
  }
}

// What one thread adds up: patches [first, last), outputs [begin, end).
struct Share {
  int64_t first, last, begin, end;
};

// How threads share the sums: groups of them take some blocks of outputs each, and in a group each
// thread a part of the patches, for which it has sums of its own. Sums lie [group][part][share's].
struct Sharing {
  Sharing(const Plane& plane, int threads)
      : blocks(plane.outputs / kBlock),
        of_block(kPlaces * plane.depth * kBlock),
        // Parts cost memory, which many sums do not have in the caches.
        groups(blocks * of_block > kLargestSums ? std::min<int64_t>(threads, blocks) : 1),
        parts(threads / groups) {}
  int64_t FirstBlock(int64_t group) const { return blocks * group / groups; }
  int64_t BlocksOf(int64_t group) const { return FirstBlock(group + 1) - FirstBlock(group); }
  int64_t GroupOf(int64_t block) const { return ((block + 1) * groups - 1) / blocks; }
  int64_t SumsOf(int64_t group, int64_t part) const {  // where they begin
    return (FirstBlock(group) * parts + BlocksOf(group) * part) * of_block;
  }

  int64_t blocks, of_block;  // of_block: sums of a block of outputs
  int64_t groups, parts;
};

// Pairs of patches from `first` on, to [place][channels / 16][pair][16] each; the patch behind the
// last one is zeros.
void LayOut(const Plane& plane, const Share& share, const uint16_t* x, const uint16_t* dy,
            int64_t first, int64_t pairs, uint32_t* inputs, uint32_t* gradients) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    std::array<PatchPixels, 2> pixels;
    std::array<ResultGradients, 2> results;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t patch = first + 2 * pair + static_cast<int64_t>(i);
      if (patch < share.last) {
        const Place place = PlaceOf(plane, patch);
        pixels[i] = PixelsOf(plane, place, x);
        results[i] = GradientsOf(plane, place, dy);
      } else {
        pixels[i].fill(kZeros);
        results[i].fill(kZeros);
      }
    }
    StorePatches(
        0, plane.depth, pairs, inputs + pair * kVector,
        [&](size_t i, int64_t channel, int64_t half, Patch & patch)
            __attribute__((always_inline)) { LoadInput(pixels[i], channel, half, patch); });
    StorePatches(
        share.begin, share.end, pairs, gradients + pair * kVector,
        [&](size_t i, int64_t channel, int64_t half, Patch & patch)
            __attribute__((always_inline)) { LoadGradient(results[i], channel, half, patch); });
  }
}

// The products of 8 inputs and 32 outputs, added to `sums` [8][32] or, the first ones, put there.
void Accumulate(int64_t pairs, const uint32_t* x, const uint32_t* dy, bool none, float* sums) {
  __m512 sum[kTileInputs][2];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kTileInputs; ++i) {
    sum[i][0] = none ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + i * kBlock);
    sum[i][1] = none ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + i * kBlock + kVector);
  }
  for (int64_t pair = 0; pair < pairs; ++pair, dy += kVector, x += kVector) {
    const __m512bh first = Pairs(dy), second = Pairs(dy + pairs * kVector);
    const auto* const words = reinterpret_cast<const uint16_t*>(x);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kTileInputs; ++i) {
      const __m512bh input = Repeated(words + 2 * i);
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], input, first);
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], input, second);
    }
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kTileInputs; ++i) {
    _mm512_storeu_ps(sums + i * kBlock, sum[i][0]);
    _mm512_storeu_ps(sums + i * kBlock + kVector, sum[i][1]);
  }
}

// A share's sums, [place][block of outputs][input][32].
void AddPatches(const Plane& plane, const Share& share, const uint16_t* x, const uint16_t* dy,
                float* sums) {
  static thread_local Scratch<uint32_t> input_scratch, gradient_scratch;
  const int64_t outputs = share.end - share.begin;
  uint32_t* const inputs = input_scratch.Of(kPlaces * PlaceWords(plane.depth, kPairsOfChunk));
  uint32_t* const gradients = gradient_scratch.Of(kPlaces * PlaceWords(outputs, kPairsOfChunk));
  const int64_t all = (share.last - share.first + 1) / 2;
  const int64_t chunks = (all + kPairsOfChunk - 1) / kPairsOfChunk;
  if (chunks == 0) std::fill_n(sums, kPlaces * plane.depth * outputs, 0.0F);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t begin = all * chunk / chunks, pairs = all * (chunk + 1) / chunks - begin;
    LayOut(plane, share, x, dy, share.first + 2 * begin, pairs, inputs, gradients);
    const int64_t next = std::min(share.last, share.first + 2 * (begin + pairs));
    const int64_t after = std::min(share.last, next + 2 * pairs);
    const auto prefetch_of = [&](const uint16_t* values, int64_t channels) {
      return Prefetch(values + plane.ElementsBefore(next, channels),
                      values + plane.ElementsBefore(after, channels),
                      kPlaces * outputs / kBlock * plane.depth / kTileInputs);
    };
    // Threads that share the outputs each read only a part of a pixel, so nothing is prefetched.
    const bool all_outputs = outputs == plane.outputs;
    Prefetch x_prefetch = prefetch_of(x, plane.depth);
    Prefetch dy_prefetch = all_outputs ? prefetch_of(dy, plane.outputs) : Prefetch(dy, dy, 1);
    for (int64_t place = 0; place < kPlaces; ++place) {
      for (int64_t block = 0; block < outputs / kBlock; ++block) {
        const uint32_t* const dy_at =
            gradients + place * PlaceWords(outputs, pairs) + block * kBlock * pairs;
        float* const to = sums + (place * outputs / kBlock + block) * plane.depth * kBlock;
        for (int64_t input = 0; input < plane.depth; input += kTileInputs) {
          const int64_t panel = input / kVector * kVector;
          Accumulate(
              pairs,
              inputs + place * PlaceWords(plane.depth, pairs) + panel * pairs + input - panel,
              dy_at, chunk == 0, to + input * kBlock);
          x_prefetch.Fetch();
          dy_prefetch.Fetch();
        }
      }
    }
  }
}

// Stores the taps of 32 inputs and a block of 32 outputs, which are sums of `shares` shares that
// lie `of_share` apart.
void StoreTaps(const Plane& plane, const float* sums, int64_t of_place, int64_t of_share,
               int64_t shares, uint16_t* dw) {
  alignas(64) uint32_t words[9][2][kVector][kVector];  // [tap][half of the outputs][pair of inputs]
  const auto taps_of = [&](const float* at, __m512(&taps)[9]) __attribute__((always_inline)) {
    Patch patch;
#pragma GCC unroll 16
    for (int64_t place = 0; place < kPlaces; ++place) {
      patch[place] = _mm512_loadu_ps(at + place * of_place);
      for (int64_t share = 1; share < shares; ++share) {
        patch[place] =
            _mm512_add_ps(patch[place], _mm512_loadu_ps(at + share * of_share + place * of_place));
      }
    }
    TransformSums(patch, taps);
  };
  for (int64_t pair = 0; pair < kVector; ++pair) {  // of an even input and the odd one behind it
    for (int64_t half = 0; half < 2; ++half) {
      __m512 even[9], odd[9];
      taps_of(sums + pair * kBlock + half * kVector, even);
      taps_of(sums + (kVector + pair) * kBlock + half * kVector, odd);
      for (int64_t tap = 0; tap < 9; ++tap) {
        _mm512_store_si512(words[tap][half][pair], Join(even[tap], odd[tap]));
      }
    }
  }
  for (int64_t tap = 0; tap < 9; ++tap) {
    for (int64_t half = 0; half < 2; ++half) {
      TurnRound(words[tap][half][0]);
      for (int64_t i = 0; i < kVector; ++i) {
        _mm512_storeu_si512(dw + ((2 * i + half) * 9 + tap) * plane.depth,
                            _mm512_load_si512(words[tap][half][i]));
      }
    }
  }
}

}  // namespace

void WinogradWeightGradient(const Convolution& c, const uint16_t* x, const uint16_t* dy,
                            uint16_t* dw, int threads) {
  static thread_local Scratch<float> scratch;
  const Plane plane = {c.images, c.height, c.width, c.inputs, c.outputs};
  const Sharing sharing(plane, threads);
  const int64_t pairs = (plane.patches() + 1) / 2;
  float* const sums = scratch.Of(sharing.blocks * sharing.parts * sharing.of_block);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t i = 0; i < sharing.groups * sharing.parts; ++i) {
    const int64_t group = i / sharing.parts, part = i % sharing.parts;
    AddPatches(plane,
               {.first = 2 * (pairs * part / sharing.parts),
                .last = std::min(plane.patches(), 2 * (pairs * (part + 1) / sharing.parts)),
                .begin = sharing.FirstBlock(group) * kBlock,
                .end = sharing.FirstBlock(group + 1) * kBlock},
               x, dy, sums + sharing.SumsOf(group, part));
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < sharing.blocks; ++block) {
    const int64_t group = sharing.GroupOf(block);
    const int64_t of_place = sharing.BlocksOf(group) * c.inputs * kBlock;
    const float* const from =
        sums + sharing.SumsOf(group, 0) + (block - sharing.FirstBlock(group)) * c.inputs * kBlock;
    for (int64_t input = 0; input < c.inputs; input += kBlock) {
      StoreTaps(plane, from + input * kBlock, of_place, sharing.BlocksOf(group) * sharing.of_block,
                sharing.parts, dw + block * kBlock * 9 * c.inputs + input);
    }
  }
}

}  // namespace tutti::device::cpu
#pragma GCC pop_options
#endif
