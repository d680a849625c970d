#include "runtime/data/decode/jpeg/inverse_transform.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/data/decode/jpeg/inverse_transform_avx2.h"

namespace tutti::data {
namespace {

// Eight columns of a block, or rows. Unsigned, since sums that no image has wrap around.
typedef uint32_t Lanes __attribute__((vector_size(32)));
typedef int32_t SignedLanes __attribute__((vector_size(32)));
typedef int16_t Coefficients16 __attribute__((vector_size(16)));
typedef uint16_t Products16 __attribute__((vector_size(16)));

constexpr int kFraction = 13;  // bits of the constants below
constexpr int kBetween = 2;    // bits that are kept between the passes
constexpr int kLowest = -128, kHighest = 127;

constexpr uint32_t Fixed(double value) {
  return static_cast<uint32_t>(
      static_cast<int32_t>(value * (1 << kFraction) + (value < 0 ? -0.5 : 0.5)));
}

TUTTI_INLINE Lanes ShiftRight(Lanes value, int bits) {
  return reinterpret_cast<Lanes>(reinterpret_cast<SignedLanes>(value) >> bits);
}

// The lower 16 bits as a number with a sign, times 2^bits.
TUTTI_INLINE Lanes Low16(Lanes value, int bits = 0) { return ShiftRight(value << 16, 16 - bits); }

TUTTI_INLINE Lanes Clamp(Lanes value, int low, int high) {
  auto v = reinterpret_cast<SignedLanes>(value);
  v = v > low ? v : SignedLanes{} + low;
  return reinterpret_cast<Lanes>(v < high ? v : SignedLanes{} + high);
}

TUTTI_INLINE Lanes Rounded(Lanes value, int bits) {
  return ShiftRight(value + (uint32_t{1} << (bits - 1)), bits);
}

// Replaces eight frequencies by the eight values.
TUTTI_INLINE void Transform8(Lanes* v, int shift) {
  const Lanes even2 = v[2] * Fixed(0.541196100) + v[6] * (Fixed(0.541196100) - Fixed(1.847759065));
  const Lanes even3 = v[2] * (Fixed(0.541196100) + Fixed(0.765366865)) + v[6] * Fixed(0.541196100);
  const Lanes even0 = Low16(v[0] + v[4], kFraction), even1 = Low16(v[0] - v[4], kFraction);
  const Lanes even[4] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};

  const Lanes z3 = Low16(v[7] + v[3]), z4 = Low16(v[5] + v[1]);
  const Lanes turned3 = z3 * (Fixed(1.175875602) - Fixed(1.961570560)) + z4 * Fixed(1.175875602);
  const Lanes turned4 = z3 * Fixed(1.175875602) + z4 * (Fixed(1.175875602) - Fixed(0.390180644));
  const Lanes odd[4] = {
      v[1] * (Fixed(1.501321110) - Fixed(0.899976223)) - v[7] * Fixed(0.899976223) + turned4,
      v[3] * (Fixed(3.072711026) - Fixed(2.562915447)) - v[5] * Fixed(2.562915447) + turned3,
      v[5] * (Fixed(2.053119869) - Fixed(2.562915447)) - v[3] * Fixed(2.562915447) + turned4,
      v[7] * (Fixed(0.298631336) - Fixed(0.899976223)) - v[1] * Fixed(0.899976223) + turned3};
  for (int i = 0; i < 4; ++i) {
    v[i] = Rounded(even[i] + odd[i], shift);
    v[7 - i] = Rounded(even[i] - odd[i], shift);
  }
}

// Replaces eight frequencies by four values; the fifth frequency has no part in them.
TUTTI_INLINE void Transform4(Lanes* v, int shift) {
  const Lanes even0 = v[0] << (kFraction + 1);
  const Lanes even2 = v[2] * Fixed(1.847759065) - v[6] * Fixed(0.765366865);
  const Lanes odd0 = v[5] * Fixed(1.451774981) - v[7] * Fixed(0.211164243) -
                     v[3] * Fixed(2.172734803) + v[1] * Fixed(1.061594337);
  const Lanes odd1 = v[3] * Fixed(0.899976223) - v[7] * Fixed(0.509795579) -
                     v[5] * Fixed(0.601344887) + v[1] * Fixed(2.562915447);
  v[0] = Rounded(even0 + even2 + odd1, shift + 1);
  v[3] = Rounded(even0 + even2 - odd1, shift + 1);
  v[1] = Rounded(even0 - even2 + odd0, shift + 1);
  v[2] = Rounded(even0 - even2 - odd0, shift + 1);
}

// And two, of the first and the odd ones.
TUTTI_INLINE void Transform2(Lanes* v, int shift) {
  const Lanes even = v[0] << (kFraction + 2);
  const Lanes odd = v[5] * Fixed(0.850430095) - v[7] * Fixed(0.720959822) -
                    v[3] * Fixed(1.272758580) + v[1] * Fixed(3.624509785);
  v[0] = Rounded(even + odd, shift + 2);
  v[1] = Rounded(even - odd, shift + 2);
}

template <int kSize>
TUTTI_INLINE void TransformLanes(Lanes* v, int shift) {
  if constexpr (kSize == 8) Transform8(v, shift);
  if constexpr (kSize == 4) Transform4(v, shift);
  if constexpr (kSize == 2) Transform2(v, shift);
}

TUTTI_INLINE void Transpose8(Lanes* v) {
  Lanes a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = __builtin_shufflevector(v[i], v[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = __builtin_shufflevector(v[i], v[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = __builtin_shufflevector(a[i + j], a[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + 2 * j + 1] =
          __builtin_shufflevector(a[i + j], a[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Stores the columns v[0] to v[kSize - 1] as rows; the `kSize` bytes of each lane lie side by side.
template <int kSize>
TUTTI_INLINE void Store(const Lanes* v, uint8_t* to, size_t stride) {
  constexpr int kWords = kSize == 8 ? 2 : 1;
  Lanes words[kWords];
  for (int w = 0; w < kWords; ++w) {
    const Lanes* const from = v + 4 * w;
    words[w] = from[0] | from[1] << 8;
    if constexpr (kSize > 2) words[w] |= from[2] << 16 | from[3] << 24;
  }
  if constexpr (kSize == 8) {
    const Lanes low = __builtin_shufflevector(words[0], words[1], 0, 8, 1, 9, 4, 12, 5, 13);
    const Lanes high = __builtin_shufflevector(words[0], words[1], 2, 10, 3, 11, 6, 14, 7, 15);
    alignas(32) uint8_t rows[2][4][8];
    std::memcpy(rows[0], &low, sizeof low);
    std::memcpy(rows[1], &high, sizeof high);
    for (size_t y = 0; y < 8; ++y) {
      std::memcpy(to + y * stride, rows[y / 2 % 2][y / 4 * 2 + y % 2], 8);
    }
  } else {
    uint32_t rows[8];
    std::memcpy(rows, words, sizeof rows);
    for (size_t y = 0; y < kSize; ++y) std::memcpy(to + y * stride, &rows[y], kSize);
  }
}

// The frequencies, beside 0, that a size is made from.
constexpr bool HasPart(int size, int row) {
  return size == 8 || (size == 4 ? row != 4 : row % 2 == 1);
}

template <int kSize>
TUTTI_INLINE void TransformBlock(const int16_t* block, const Products16* steps, uint8_t* to,
                                 size_t stride) {
  Products16 rows[8];
  std::memcpy(rows, block, sizeof rows);
  Products16 others = {};
  for (int y = 1; y < 8; ++y) {
    if (HasPart(kSize, y)) others |= rows[y];
  }
  uint64_t any[2];
  std::memcpy(any, &others, sizeof any);
  const auto widened = [](Products16 row) {
    return reinterpret_cast<Lanes>(
        __builtin_convertvector(reinterpret_cast<Coefficients16>(row), SignedLanes));
  };
  Lanes v[8] = {};
  if (kSize > 2 && (any[0] | any[1]) == 0) {
    // All rows of the first pass are alike. So it wraps around where the sums would be cut off.
    v[0] = widened(rows[0] * steps[0] << kBetween);
    for (int y = 1; y < kSize; ++y) v[y] = v[0];
  } else {
    for (int y = 0; y < 8; ++y) {
      if (y == 0 || HasPart(kSize, y)) v[y] = widened(rows[y] * steps[y]);
    }
    TransformLanes<kSize>(v, kFraction - kBetween);
    for (int y = kSize; y < 8; ++y) v[y] = Lanes{};
  }
  Transpose8(v);
  for (int x = 0; x < 8; ++x) {
    if (HasPart(kSize, x) || (x == 0 && kSize > 2)) v[x] = Clamp(v[x], INT16_MIN, INT16_MAX);
  }
  TransformLanes<kSize>(v, kFraction + kBetween + 3);
  for (int x = 0; x < kSize; ++x) v[x] = Clamp(v[x], kLowest, kHighest) + uint32_t{128};
  Store<kSize>(v, to, stride);
}

template <int kSize>
TUTTI_INLINE void TransformBlocks(const int16_t* coefficients, int blocks, const uint16_t* steps,
                                  uint8_t* to, size_t stride) {
  Products16 rows[8];
  std::memcpy(rows, steps, sizeof rows);
  for (int i = 0; i < blocks; ++i) {
    TransformBlock<kSize>(coefficients + size_t{64} * static_cast<size_t>(i), rows,
                          to + size_t{kSize} * static_cast<size_t>(i), stride);
  }
}

// The mean of the block; libjpeg looks at ten bits of it.
void TakeMeans(const int16_t* coefficients, int blocks, uint16_t step, uint8_t* to) {
  for (int i = 0; i < blocks; ++i) {
    const int sum = coefficients[size_t{64} * static_cast<size_t>(i)] * static_cast<int16_t>(step);
    const int mean = (((sum + 4) >> 3) & 1023) ^ 512;  // 512 is none
    to[i] = static_cast<uint8_t>(std::clamp(mean - 512, kLowest, kHighest) + 128);
  }
}

TUTTI_INLINE void InLanes(const int16_t* coefficients, int blocks, const uint16_t* steps, int size,
                          uint8_t* samples, size_t stride) {
  switch (size) {
    case 8:
      return TransformBlocks<8>(coefficients, blocks, steps, samples, stride);
    case 4:
      return TransformBlocks<4>(coefficients, blocks, steps, samples, stride);
    case 2:
      return TransformBlocks<2>(coefficients, blocks, steps, samples, stride);
    default:
      TakeMeans(coefficients, blocks, steps[0], samples);
  }
}

void TransformPlain(const int16_t* coefficients, int blocks, const uint16_t* steps, int size,
                    uint8_t* samples, size_t stride) {
  InLanes(coefficients, blocks, steps, size, samples, stride);
}

TUTTI_AVX2_CODE void TransformAvx2(const int16_t* coefficients, int blocks, const uint16_t* steps,
                                   int size, uint8_t* samples, size_t stride) {
  while (blocks > 0) {
    const int done =
        size == 8 ? TransformWholeAvx2(coefficients, blocks, steps, samples, stride) : 0;
    coefficients += 64 * static_cast<ptrdiff_t>(done);
    samples += static_cast<ptrdiff_t>(size) * done;
    blocks -= done;
    const int now = size == 8 ? std::min(blocks, 2) : blocks;
    InLanes(coefficients, now, steps, size, samples, stride);
    coefficients += 64 * static_cast<ptrdiff_t>(now);
    samples += static_cast<ptrdiff_t>(size) * now;
    blocks -= now;
  }
}

}  // namespace

const Kernels<BlockTransform> kInverseTransform = {TransformPlain, TransformAvx2};

}  // namespace tutti::data
