#include "runtime/comm/collective/compression/encoding.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "runtime/comm/collective/reduction/element.h"
#include "runtime/comm/collective/reduction/reduce_operation.h"

namespace tutti::comm {
namespace {

constexpr uint32_t kInfinity = 0x7f800000;  // its bits; those of every NaN are above
// Adding it leaves a float of small magnitude rounded to a whole number (nearest even), which then
// is the difference of the bits: in every instruction set, without a conversion.
constexpr float kRounding = 0x1.8p23f;
// 127 times it is finite.
constexpr float kLargestScale = std::numeric_limits<float>::max() / 127 * (1 - 0x1p-22f);

TUTTI_INLINE uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffff; }
TUTTI_INLINE float OrZero(float value) { return Magnitude(value) < kInfinity ? value : 0; }

struct Scale {
  float scale;
  float inverse;
};

TUTTI_INLINE Scale ScaleOf(uint32_t largest) {
  if (largest >= kInfinity) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float most = std::bit_cast<float>(largest);
  if (most < 0x1p-100f) return {0, 0};
  return {std::min(most / 127, kLargestScale), 127 / most};
}

// At most kEncodingBlock values.
template <bool kResidual>
TUTTI_INLINE void EncodeBlock(const float* __restrict values, float* __restrict residual,
                              size_t count, std::byte* __restrict to) {
  alignas(64) float sent[kEncodingBlock];
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    sent[i] = kResidual ? values[i] + residual[i] : values[i];
    largest = std::max(largest, Magnitude(sent[i]));
  }
  const auto [scale, inverse] = ScaleOf(largest);
  std::memcpy(to, &scale, sizeof(scale));
  const bool finite = largest < kInfinity;
  for (size_t i = 0; i < count; ++i) {
    const float rounded = (finite ? sent[i] * inverse : 0) + kRounding;
    to[sizeof(scale) + i] =
        static_cast<std::byte>(std::bit_cast<int32_t>(rounded) - std::bit_cast<int32_t>(kRounding));
    if (kResidual) residual[i] = finite ? sent[i] - (rounded - kRounding) * scale : 0;
  }
}

template <bool kResidual>
TUTTI_INLINE void EncodeBlocks(const float* values, float* residual, size_t count, std::byte* to) {
  constexpr size_t kBytes = sizeof(float) + kEncodingBlock;
  size_t done = 0;
  for (; done + kEncodingBlock <= count; done += kEncodingBlock, to += kBytes) {
    EncodeBlock<kResidual>(values + done, kResidual ? residual + done : nullptr, kEncodingBlock,
                           to);
  }
  if (done == count) return;
  EncodeBlock<kResidual>(values + done, kResidual ? residual + done : nullptr, count - done, to);
}

template <bool kAdd>
TUTTI_INLINE void DecodeBlock(const std::byte* __restrict from, size_t count,
                              float* __restrict values) {
  float scale;
  std::memcpy(&scale, from, sizeof(scale));
  const auto* const whole = reinterpret_cast<const int8_t*>(from + sizeof(scale));
  for (size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(whole[i]) * scale;
    values[i] = kAdd ? values[i] + value : value;
  }
}

template <bool kAdd>
TUTTI_INLINE void DecodeBlocks(const std::byte* from, size_t count, float* values) {
  constexpr size_t kBytes = sizeof(float) + kEncodingBlock;
  size_t done = 0;
  for (; done + kEncodingBlock <= count; done += kEncodingBlock, from += kBytes) {
    DecodeBlock<kAdd>(from, kEncodingBlock, values + done);
  }
  if (done < count) DecodeBlock<kAdd>(from, count - done, values + done);
}

template <typename Element, bool kResidual>
TUTTI_INLINE void EncodeHalf(const float* __restrict values, float* __restrict residual,
                             size_t count, std::byte* __restrict to) {
  for (size_t i = 0; i < count; ++i) {
    const float value = kResidual ? values[i] + residual[i] : values[i];
    const uint16_t stored = Element::Store(value);
    std::memcpy(to + i * sizeof(stored), &stored, sizeof(stored));
    if (kResidual) residual[i] = OrZero(value - Element::Load(stored));
  }
}

template <typename Element, bool kAdd>
TUTTI_INLINE void DecodeHalf(const std::byte* __restrict from, size_t count,
                             float* __restrict values) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t stored;
    std::memcpy(&stored, from + i * sizeof(stored), sizeof(stored));
    const float value = Element::Load(stored);
    values[i] = kAdd ? values[i] + value : value;
  }
}

template <bool kResidual>
TUTTI_INLINE void EncodeAs(Encoding encoding, const float* values, float* residual, size_t count,
                           std::byte* to) {
  switch (encoding) {
    case Encoding::kFloat16:
      return EncodeHalf<Float16, kResidual>(values, residual, count, to);
    case Encoding::kBFloat16:
      return EncodeHalf<BFloat16, kResidual>(values, residual, count, to);
    case Encoding::kInt8:
      return EncodeBlocks<kResidual>(values, residual, count, to);
  }
}

template <bool kAdd>
TUTTI_INLINE void DecodeFrom(Encoding encoding, const std::byte* from, size_t count,
                             float* values) {
  switch (encoding) {
    case Encoding::kFloat16:
      return DecodeHalf<Float16, kAdd>(from, count, values);
    case Encoding::kBFloat16:
      return DecodeHalf<BFloat16, kAdd>(from, count, values);
    case Encoding::kInt8:
      return DecodeBlocks<kAdd>(from, count, values);
  }
}

}  // namespace

size_t EncodedBytes(Encoding encoding, size_t count) {
  if (encoding != Encoding::kInt8) return 2 * count;
  return count + (count + kEncodingBlock - 1) / kEncodingBlock * sizeof(float);
}

void Encode(Encoding encoding, const float* values, float* residual, size_t count, std::byte* to) {
  base::Vectorised([&]() TUTTI_INLINE_BODY {
    if (residual == nullptr) return EncodeAs<false>(encoding, values, nullptr, count, to);
    EncodeAs<true>(encoding, values, residual, count, to);
  });
}

void Decode(Encoding encoding, const std::byte* from, size_t count, float* values) {
  base::Vectorised([&]() TUTTI_INLINE_BODY { DecodeFrom<false>(encoding, from, count, values); });
}

void DecodeAndAdd(Encoding encoding, const std::byte* from, size_t count, float* values) {
  base::Vectorised([&]() TUTTI_INLINE_BODY { DecodeFrom<true>(encoding, from, count, values); });
}

}  // namespace tutti::comm
