// What the kernels of this folder share that is the same for every instruction set.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tutti::device::cpu {

constexpr int64_t kLanes = 32;  // bf16 values of a vector

// Where a value's place in memory is in a vector of channels: of every 32, those of even place
// first (see vector.inc).
constexpr int64_t LaneOf(int64_t place) {
  const int64_t within = place % kLanes;
  return place - within + (within % 2) * (kLanes / 2) + within / 2;
}

inline float ToFloat(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

// The first of `widest` (AVX-512), `wide` (AVX2) and `plain` that this processor runs, and that
// libtorch may use: ATEN_CPU_CAPABILITY is "avx2" or "default" where it shall not be the first.
template <typename Passes>
const Passes& Choose(const Passes& widest, const Passes& wide, const Passes& plain) {
#if defined(__x86_64__)
  const char* const variable = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string_view most = variable == nullptr ? "" : variable;
  if (most == "default") return plain;
  if (most != "avx2" && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
    return widest;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return wide;
  }
#endif
  return plain;
}

}  // namespace tutti::device::cpu
