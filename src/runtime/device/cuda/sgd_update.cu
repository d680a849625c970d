#include "chunk.cuh"
#include "sgd_update.h"

namespace tutti::device {
namespace {

__global__ void __launch_bounds__(kChunkThreads) Descend(const SgdStep s) {
  if (FoundNonfinite(s)) return;
  const auto rate = static_cast<float>(s.learning_rate), momentum = static_cast<float>(s.momentum);
  const float decay = DecayHere(s);
  const auto update = [&](float& value, float& velocity, float gradient) {
    gradient = fmaf(decay, value, gradient);
    velocity = fmaf(momentum, velocity, gradient);
    value -= rate * (s.nesterov ? fmaf(momentum, velocity, gradient) : velocity);
  };
  UpdateChunk(s, update, s.velocities);
}

}  // namespace

cudaError_t SgdUpdate(const SgdStep& step, cudaStream_t stream) {
  Descend<<<step.chunks.chunks, kChunkThreads, 0, stream>>>(step);
  return cudaGetLastError();
}

}  // namespace tutti::device
