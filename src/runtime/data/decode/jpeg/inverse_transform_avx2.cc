#include "runtime/data/decode/jpeg/inverse_transform_avx2.h"

#ifdef __x86_64__
#include <immintrin.h>

#define TUTTI_AVX2 __attribute__((target("avx2"), always_inline)) inline

namespace tutti::data {
namespace {

typedef __m256i Vector;  // of two blocks: each has one half, and no operation mixes the halves

constexpr int kBits = 13;     // of the constants' fraction
constexpr int kKeptBits = 2;  // between the passes

struct Sums {
  Vector low, high;  // 32 bits each, of the first and the last four lanes
};

constexpr int ToFixed(double value) { return static_cast<int>(value * (1 << kBits) + 0.5); }

TUTTI_AVX2 Sums Add(Sums a, Sums b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

TUTTI_AVX2 Sums Subtract(Sums a, Sums b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

TUTTI_AVX2 Sums Pairs(Vector a, Vector b) {
  return {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}

// a * x + b * y of each pair.
TUTTI_AVX2 Sums SumOfProducts(Sums pairs, int x, int y) {
  const Vector factors = _mm256_set1_epi32(
      static_cast<int>(static_cast<unsigned>(y) << 16 | (static_cast<unsigned>(x) & 0xFFFF)));
  return {_mm256_madd_epi16(pairs.low, factors), _mm256_madd_epi16(pairs.high, factors)};
}

TUTTI_AVX2 Sums Scaled(Vector a) {
  const Sums upper = Pairs(_mm256_setzero_si256(), a);
  return {_mm256_srai_epi32(upper.low, 16 - kBits), _mm256_srai_epi32(upper.high, 16 - kBits)};
}

template <int kShift>
TUTTI_AVX2 Vector Rounded16(Sums sums) {
  const Vector half = _mm256_set1_epi32(1 << (kShift - 1));
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(sums.low, half), kShift),
                            _mm256_srai_epi32(_mm256_add_epi32(sums.high, half), kShift));
}

// Replaces eight frequencies by the eight values; as Transform8 in inverse_transform.cc.
template <int kShift>
TUTTI_AVX2 void TransformEight(Vector* v) {
  constexpr int k0541 = ToFixed(0.541196100), k0765 = ToFixed(0.765366865),
                k1847 = ToFixed(1.847759065), k1175 = ToFixed(1.175875602),
                k1961 = ToFixed(1.961570560), k0390 = ToFixed(0.390180644),
                k0899 = ToFixed(0.899976223), k1501 = ToFixed(1.501321110),
                k2562 = ToFixed(2.562915447), k3072 = ToFixed(3.072711026),
                k2053 = ToFixed(2.053119869), k0298 = ToFixed(0.298631336);
  const Sums two_six = Pairs(v[2], v[6]);
  const Sums even2 = SumOfProducts(two_six, k0541, k0541 - k1847);
  const Sums even3 = SumOfProducts(two_six, k0541 + k0765, k0541);
  const Sums even0 = Scaled(_mm256_add_epi16(v[0], v[4]));
  const Sums even1 = Scaled(_mm256_sub_epi16(v[0], v[4]));
  const Sums even[4] = {Add(even0, even3), Add(even1, even2), Subtract(even1, even2),
                        Subtract(even0, even3)};
  const Sums z = Pairs(_mm256_add_epi16(v[3], v[7]), _mm256_add_epi16(v[1], v[5]));
  const Sums z3 = SumOfProducts(z, k1175 - k1961, k1175),
             z4 = SumOfProducts(z, k1175, k1175 - k0390);
  const Sums one_seven = Pairs(v[1], v[7]), three_five = Pairs(v[3], v[5]);
  const Sums odd[4] = {Add(SumOfProducts(one_seven, k1501 - k0899, -k0899), z4),
                       Add(SumOfProducts(three_five, k3072 - k2562, -k2562), z3),
                       Add(SumOfProducts(three_five, -k2562, k2053 - k2562), z4),
                       Add(SumOfProducts(one_seven, -k0899, k0298 - k0899), z3)};
  for (int i = 0; i < 4; ++i) {
    v[i] = Rounded16<kShift>(Add(even[i], odd[i]));
    v[7 - i] = Rounded16<kShift>(Subtract(even[i], odd[i]));
  }
}

TUTTI_AVX2 void TurnOver(Vector* v) {
  Vector a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(v[i], v[i + 4]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(v[i], v[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm256_unpacklo_epi16(a[i], a[i + 4]);
    b[2 * i + 1] = _mm256_unpackhi_epi16(a[i], a[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = _mm256_unpacklo_epi16(b[i], b[i + 4]);
    v[2 * i + 1] = _mm256_unpackhi_epi16(b[i], b[i + 4]);
  }
}

// Turns eight columns of values around 0 into rows of samples: two rows of a block in each half.
TUTTI_AVX2 void ToRows(const Vector* v, Vector* rows) {
  Vector p[4];
  for (int i = 0; i < 4; ++i) p[i] = _mm256_packs_epi16(v[i], v[i + 4]);
  const Vector left01 = _mm256_unpacklo_epi8(p[0], p[1]), left23 = _mm256_unpacklo_epi8(p[2], p[3]);
  const Vector right01 = _mm256_unpackhi_epi8(p[0], p[1]);
  const Vector right23 = _mm256_unpackhi_epi8(p[2], p[3]);
  const Vector left[2] = {_mm256_unpacklo_epi16(left01, left23),
                          _mm256_unpackhi_epi16(left01, left23)};
  const Vector right[2] = {_mm256_unpacklo_epi16(right01, right23),
                           _mm256_unpackhi_epi16(right01, right23)};
  const Vector middle = _mm256_set1_epi8(-128);
  for (int i = 0; i < 2; ++i) {
    rows[2 * i] = _mm256_xor_si256(_mm256_unpacklo_epi32(left[i], right[i]), middle);
    rows[2 * i + 1] = _mm256_xor_si256(_mm256_unpackhi_epi32(left[i], right[i]), middle);
  }
}

TUTTI_AVX2 void StoreRows(const Vector* rows, bool both, uint8_t* to, size_t stride) {
  for (int i = 0; i < 4; ++i, to += 2 * stride) {
    if (both) {
      const Vector pair = _mm256_permute4x64_epi64(rows[i], 0b11011000);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(pair));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + stride), _mm256_extracti128_si256(pair, 1));
    } else {
      const __m128i one = _mm256_castsi256_si128(rows[i]);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), one);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to + stride), _mm_unpackhi_epi64(one, one));
    }
  }
}

TUTTI_AVX2 Vector RowOfTwo(const int16_t* first, const int16_t* second) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

}  // namespace

__attribute__((target("avx2"))) int TransformWholeAvx2(const int16_t* coefficients, int blocks,
                                                       const uint16_t* steps, uint8_t* samples,
                                                       size_t stride) {
  Vector step[8];
  for (int y = 0; y < 8; ++y) {
    const auto* const row = reinterpret_cast<const int16_t*>(steps) + 8 * y;
    step[y] = RowOfTwo(row, row);
  }
  const Vector beyond = _mm256_set1_epi16(static_cast<int16_t>(0xC000));
  for (int i = 0; i < blocks; i += 2, coefficients += 128, samples += 16) {
    const bool both = i + 1 < blocks;
    const int16_t* const second = both ? coefficients + 64 : coefficients;
    Vector v[8];
    for (int y = 0; y < 8; ++y) {
      v[y] = _mm256_mullo_epi16(RowOfTwo(coefficients + 8 * y, second + 8 * y), step[y]);
    }
    // With first rows beyond these bounds libjpeg-turbo has two ways to compute.
    if (!_mm256_testz_si256(_mm256_add_epi16(v[0], _mm256_set1_epi16(0x2000)), beyond)) return i;
    TransformEight<kBits - kKeptBits>(v);
    TurnOver(v);
    TransformEight<kBits + kKeptBits + 3>(v);
    Vector rows[4];
    ToRows(v, rows);
    StoreRows(rows, both, samples, stride);
  }
  return blocks;
}

}  // namespace tutti::data

#else
namespace tutti::data {
int TransformWholeAvx2(const int16_t*, int, const uint16_t*, uint8_t*, size_t) { return 0; }
}  // namespace tutti::data
#endif
