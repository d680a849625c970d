// What the kernels of this folder share that is the same for every instruction set.
#pragma once

#include <bit>
#include <cstdint>

#include "base/instruction_set.h"

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

// Of machine code for AVX-512, AVX2 and any processor, what this process may use.
template <typename Passes>
const Passes& Choose(const Passes& widest, const Passes& wide, const Passes& plain) {
  switch (base::UsableInstructionSet()) {
    case base::InstructionSet::kAvx512:
      return widest;
    case base::InstructionSet::kAvx2:
      return wide;
    case base::InstructionSet::kPlain:
      return plain;
  }
  return plain;
}

}  // namespace tutti::device::cpu
