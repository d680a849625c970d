// Implements the innermost loops of the convolutions, by AVX512-BF16. Included by their sources
// alone, below the pragma of that instruction set.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/device/cpu/bf16/convolution_bf16.h"

namespace tutti::device::cpu {

constexpr int64_t kBlock = 32;  // channels of a tile: two vectors
constexpr int64_t kVector = 16;
// Returns one vector where a layer has no more channels.
inline int64_t BlockOf(int64_t channels) { return std::min(kBlock, channels); }

inline __m512bh Pairs(const void* from) { return (__m512bh)_mm512_loadu_si512(from); }
inline __m512bh Repeated(const uint16_t* pair) {
  int word;
  std::memcpy(&word, pair, sizeof(word));
  return (__m512bh)_mm512_set1_epi32(word);
}

// Makes words of a channel each, the lower half from `a` and the upper one from `b`, of 32
// channels.
inline void Interleave(const uint16_t* a, const uint16_t* b, __m512i& first, __m512i& second) {
  // Words 0, 32, 1, 33, ... of the two vectors, one after the other.
  const __m512i channel = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i both = _mm512_or_si512(
      channel, _mm512_slli_epi32(_mm512_add_epi32(channel, _mm512_set1_epi32(32)), 16));
  const __m512i low = _mm512_loadu_si512(a), high = _mm512_loadu_si512(b);
  first = _mm512_permutex2var_epi16(low, both, high);
  second =
      _mm512_permutex2var_epi16(low, _mm512_add_epi32(both, _mm512_set1_epi32(0x00100010)), high);
}

// Does the same for 16 channels.
inline __m512i InterleaveNarrow(const uint16_t* a, const uint16_t* b) {
  const auto words = [](const uint16_t* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  };
  return _mm512_or_si512(words(a), _mm512_slli_epi32(words(b), 16));
}

// Returns words of which the lower half is of `a` and the upper one of `b`, rounded.
inline __m512i Join(__m512 a, __m512 b) {
  const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(a));
  const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(b));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Turns columns of 16 rows of 16 words into rows.
inline void TurnRound(uint32_t* words) {
  __m512i row[16], next[16];
  for (int i = 0; i < 16; ++i) row[i] = _mm512_loadu_si512(words + 16 * i);
  for (int i = 0; i < 16; i += 2) {
    next[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    next[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int half = 0; half < 2; ++half) {
      row[i + 2 * half] = _mm512_unpacklo_epi64(next[i + half], next[i + half + 2]);
      row[i + 2 * half + 1] = _mm512_unpackhi_epi64(next[i + half], next[i + half + 2]);
    }
  }
  // Now a row has one column of four rows in each quarter: every fourth column of theirs.
  for (int column = 0; column < 4; ++column) {
    const __m512i a = row[column], b = row[column + 4], c = row[column + 8], d = row[column + 12];
    const __m512i ab_even = _mm512_shuffle_i32x4(a, b, 0x88),
                  ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
    const __m512i cd_even = _mm512_shuffle_i32x4(c, d, 0x88),
                  cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
    _mm512_storeu_si512(words + 16 * column, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88));
    _mm512_storeu_si512(words + 16 * (column + 4), _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88));
    _mm512_storeu_si512(words + 16 * (column + 8), _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd));
    _mm512_storeu_si512(words + 16 * (column + 12), _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd));
  }
}

// Memory that is read next; a part of it is asked for at every visit of a tile, so that it
// comes while the processor multiplies.
class Prefetch {
 public:
  Prefetch(const uint16_t* begin, const uint16_t* end, int64_t visits)
      : at_(reinterpret_cast<const char*>(begin)),
        end_(reinterpret_cast<const char*>(end)),
        step_(((end_ - at_) / kLine + visits) / visits * kLine) {}
  void Fetch() {
    const char* const until = at_ + std::min(step_, end_ - at_);
    for (; at_ < until; at_ += kLine) _mm_prefetch(at_, _MM_HINT_T1);
  }

 private:
  static constexpr int64_t kLine = 64;
  const char *at_, *end_;
  int64_t step_;
};

// Copies an image's row with as many zeros before and behind as `border` pixels have; `from` is
// null for a row of the border.
inline void CopyBordered(const uint16_t* from, int64_t values, int64_t border, uint16_t* to) {
  if (from == nullptr) {
    std::fill_n(to, values + 2 * border, uint16_t{0});
    return;
  }
  std::fill_n(to, border, uint16_t{0});
  std::memcpy(to + border, from, 2 * static_cast<size_t>(values));
  std::fill_n(to + border + values, border, uint16_t{0});
}

// Returns where the pixel of x lies, in elements, of which a kernel of 1x1 makes output pixel
// `pixel`.
inline int64_t PlaceOf(const Convolution& c, int64_t pixel) {
  if (c.stride == 1) return pixel * c.inputs;
  const int64_t column = pixel % c.out_width(), row = pixel / c.out_width();
  const int64_t image = row / c.out_height();
  return ((image * c.height + row % c.out_height() * c.stride) * c.width + column * c.stride) *
         c.inputs;
}

}  // namespace tutti::device::cpu
