// Eight bf16 values, which a thread reads and writes at once: 16 bytes.
#pragma once

#include <cuda_bf16.h>

namespace tutti::device {

constexpr int kVector = 8;

__device__ inline void Unpack(const uint4& raw, float (&values)[kVector]) {
  const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(words[i] << 16);
    values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ inline unsigned Pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ inline uint4 Pack(const float (&values)[kVector]) {
  return {Pack(values[0], values[1]), Pack(values[2], values[3]), Pack(values[4], values[5]),
          Pack(values[6], values[7])};
}

}  // namespace tutti::device
