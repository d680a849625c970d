// Converts between 16-bit floating point (IEEE 754 binary16, and bfloat16) and float, by integer
// operations without branches, so that a loop over many is vectorised. To 16 bits: round to
// nearest, ties to even; subnormals are kept, NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace tutti::comm {

inline __attribute__((always_inline)) float BFloat16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

inline __attribute__((always_inline)) uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t quiet_nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

inline __attribute__((always_inline)) float HalfToFloat(uint16_t value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x8000) << 16;
  const uint32_t magnitude = value & 0x7fff;
  const uint32_t shifted = magnitude << 13;
  const uint32_t normal = shifted + (112u << 23);   // bias 15 becomes bias 127
  const uint32_t special = shifted + (224u << 23);  // exponent 31 becomes 255
  const uint32_t subnormal =                        // mantissa * 2^-24, exact
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t finite = magnitude < 0x0400 ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00 ? special : finite));
}

inline __attribute__((always_inline)) uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Below 2^-14 the half's unit is 2^-24, which is that of floats in [0.5, 1): adding 0.5 rounds.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t finite = magnitude < 0x38800000 ? subnormal : normal;
  const uint32_t infinite = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  // 65520, half-way between the largest half and the next power of two, rounds to infinity.
  return static_cast<uint16_t>(sign | (magnitude >= 0x477ff000 ? infinite : finite));
}

}  // namespace tutti::comm
