// How a kernel walks over a chunk of flat memory (device/kernels/bucket_chunks.h). A block of
// kChunkThreads has a chunk.
#pragma once

#include <cuda_bf16.h>

#include "update.h"
#include "vector.cuh"

namespace tutti::device {

constexpr int kChunkThreads = 256;
constexpr int kFour = 4;

// Calls `one(i)` for every element of the block's chunk, by vectors of four as far as they go:
// `four(i)` is for the i-th. Chunks begin at a multiple of four.
template <class Four, class One>
__device__ void ForChunk(const ChunkTable& chunks, const Four& four, const One& one) {
  const int64_t begin = chunks.begins[blockIdx.x], end = chunks.begins[blockIdx.x + 1];
  for (int64_t i = begin / kFour + threadIdx.x; i < end / kFour; i += kChunkThreads) four(i);
  for (int64_t i = end / kFour * kFour + threadIdx.x; i < end; i += kChunkThreads) one(i);
}

__device__ inline float4* Fours(float* from) { return reinterpret_cast<float4*>(from); }
__device__ inline const float4* Fours(const float* from) {
  return reinterpret_cast<const float4*>(from);
}

__device__ inline bool FoundNonfinite(const Update& s) {
  return s.found_nonfinite != nullptr && *s.found_nonfinite != 0;
}

// Returns the weight decay of the block's chunk.
__device__ inline float DecayHere(const Update& s) {
  return static_cast<float>(s.weight_decay) * s.chunks.decays[s.chunks.ranges[blockIdx.x]];
}

__device__ inline void StoreCopy(void* copy, int64_t i, const float4& p) {
  if (copy != nullptr) static_cast<uint2*>(copy)[i] = {Pack(p.x, p.y), Pack(p.z, p.w)};
}
__device__ inline void StoreCopy(void* copy, int64_t i, float p) {
  if (copy != nullptr) static_cast<__nv_bfloat16*>(copy)[i] = __float2bfloat16_rn(p);
}

// Calls update(value, moment..., gradient) for every element of the block's chunk, with what an
// optimizer remembers of it.
template <class Function, class... Moments>
__device__ void UpdateChunk(const Update& s, const Function& update, Moments*... moments) {
  ForChunk(
      s.chunks,
      [&](int64_t i) {
        float4 p = Fours(s.values)[i];
        const auto four = [&](auto... m) {
          const float4 g = Fours(s.gradients)[i];
          update(p.x, m.x..., g.x);
          update(p.y, m.y..., g.y);
          update(p.z, m.z..., g.z);
          update(p.w, m.w..., g.w);
          Fours(s.values)[i] = p;
          ((Fours(moments)[i] = m), ...);
          StoreCopy(s.copy, i, p);
        };
        four(Fours(moments)[i]...);
      },
      [&](int64_t i) {
        update(s.values[i], moments[i]..., s.gradients[i]);
        StoreCopy(s.copy, i, s.values[i]);
      });
}

}  // namespace tutti::device
