// The innermost loops of convolution.cc and weight_gradient.cc, by AVX512-BF16. Included by those
// two alone, below their pragma of that instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tutti::device::cpu {

constexpr int64_t kBlock = 32;  // channels of a tile: two vectors

inline __m512bh Pairs(const void* from) { return (__m512bh)_mm512_loadu_si512(from); }
inline __m512bh Repeated(const uint16_t* pair) {
  int word;
  std::memcpy(&word, pair, sizeof(word));
  return (__m512bh)_mm512_set1_epi32(word);
}

// Words of a channel each, the lower half from `a` and the upper one from `b`, of 32 channels.
inline void Interleave(const uint16_t* a, const uint16_t* b, __m512i& first, __m512i& second) {
  const __m512i low = _mm512_loadu_si512(a), high = _mm512_loadu_si512(b);
  const auto words = [&](int half) {
    const __m512i of_low = _mm512_cvtepu16_epi32(half == 0 ? _mm512_castsi512_si256(low)
                                                           : _mm512_extracti64x4_epi64(low, 1));
    const __m512i of_high = _mm512_cvtepu16_epi32(half == 0 ? _mm512_castsi512_si256(high)
                                                            : _mm512_extracti64x4_epi64(high, 1));
    return _mm512_or_si512(of_low, _mm512_slli_epi32(of_high, 16));
  };
  first = words(0);
  second = words(1);
}

}  // namespace tutti::device::cpu
