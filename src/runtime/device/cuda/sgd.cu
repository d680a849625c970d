#include "chunk.cuh"
#include "sgd.h"

namespace tutti::device {
namespace {

__global__ void __launch_bounds__(kChunkThreads) Descend(const SgdStep s) {
  if (IsSpoiled(s)) return;
  const auto rate = static_cast<float>(s.learning_rate), momentum = static_cast<float>(s.momentum);
  const float decay = DecayHere(s);
  const auto update = [&](float& value, float& velocity, float gradient) {
    gradient = fmaf(decay, value, gradient);
    velocity = fmaf(momentum, velocity, gradient);
    value -= rate * (s.nesterov ? fmaf(momentum, velocity, gradient) : velocity);
  };
  ForChunk(
      s.chunks,
      [&](int64_t i) {
        float4 p = Fours(s.values)[i], v = Fours(s.velocities)[i];
        const float4 g = Fours(s.gradients)[i];
        update(p.x, v.x, g.x);
        update(p.y, v.y, g.y);
        update(p.z, v.z, g.z);
        update(p.w, v.w, g.w);
        Fours(s.values)[i] = p;
        Fours(s.velocities)[i] = v;
        StoreCopy(s.copy, i, p);
      },
      [&](int64_t i) {
        update(s.values[i], s.velocities[i], s.gradients[i]);
        StoreCopy(s.copy, i, s.values[i]);
      });
}

}  // namespace

cudaError_t SgdUpdate(const SgdStep& step, cudaStream_t stream) {
  Descend<<<step.chunks.chunks, kChunkThreads, 0, stream>>>(step);
  return cudaGetLastError();
}

}  // namespace tutti::device
