#include "lars_update.h"
#include "norms.cuh"

namespace tutti::device {
namespace {

__global__ void __launch_bounds__(kChunkThreads)
    Squares(const LarsStep s, double* __restrict__ partial) {
  double values = 0, gradients = 0;
  ForChunk(
      s.chunks,
      [&](int64_t i) {
        const float4 p = Fours(s.values)[i];
        const float4 g = Fours(s.gradients)[i];
        values += Square(p.x) + Square(p.y) + Square(p.z) + Square(p.w);
        gradients += Square(g.x) + Square(g.y) + Square(g.z) + Square(g.w);
      },
      [&](int64_t i) {
        values += Square(s.values[i]);
        gradients += Square(s.gradients[i]);
      });
  SumOverChunk(values, gradients, partial);
}

__global__ void __launch_bounds__(kChunkThreads)
    Apply(const LarsStep s, const double* __restrict__ ratios) {
  if (FoundNonfinite(s)) return;
  const auto rate = static_cast<float>(s.learning_rate), momentum = static_cast<float>(s.momentum);
  const float decay = DecayHere(s), ratio = Finite(ratios[s.chunks.ranges[blockIdx.x]]);
  const auto update = [&](float& value, float& velocity, float gradient) {
    velocity = momentum * velocity + ratio * (gradient + decay * value);
    value -= rate * velocity;
  };
  UpdateChunk(s, update, s.velocities);
}

}  // namespace

cudaError_t LarsUpdate(const LarsStep& step, double* scratch, cudaStream_t stream) {
  const ChunkTable& chunks = step.chunks;
  double* const ratios = scratch + 2 * static_cast<int64_t>(chunks.chunks);
  Squares<<<chunks.chunks, kChunkThreads, 0, stream>>>(step, scratch);
  Ratios<<<chunks.count, kChunkThreads, 0, stream>>>(chunks, scratch, step.trust, step.weight_decay,
                                                     ratios);
  Apply<<<chunks.chunks, kChunkThreads, 0, stream>>>(step, ratios);
  return cudaGetLastError();
}

}  // namespace tutti::device
