// Defines what the kernels of this folder share that is the same for every instruction set.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "base/machine/instruction_set.h"

namespace tutti::device::cpu {

constexpr int64_t kLanes = 32;  // a multiple of what any kernel takes at once (kStep, vector.inc)

// An activation's elements: fp32, or the bits of bf16.
template <typename T>
concept Element = std::same_as<T, float> || std::same_as<T, uint16_t>;

// Returns where a vector of channels has the value for the element at `place` in memory, for
// kernels that take `step` at once: of bf16, of so many, those of even place come first (see
// vector.inc).
template <Element T>
constexpr int64_t LaneOf(int64_t place, int64_t step) {
  if constexpr (std::same_as<T, float>) return place;
  const int64_t within = place % step;
  return place - within + (within % 2) * (step / 2) + within / 2;
}

inline float ToFloat(float value) { return value; }
inline float ToFloat(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

// Returns the widest machine code that this process may use: for AVX-512, AVX2 or any processor.
template <typename Passes>
const Passes& Choose(const Passes& widest, const Passes& wide, const Passes& plain) {
  return base::For(base::UsableInstructionSet(), widest, wide, plain);
}

}  // namespace tutti::device::cpu
