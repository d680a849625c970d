#include "sgd.h"

#include <algorithm>

#include "vector.cuh"

namespace tutti::device {
namespace {

constexpr int kThreads = 256;
constexpr int kFour = 4;

__device__ void UpdateOne(float& value, float& velocity, float gradient, const SgdStep& s,
                          float rate) {
  gradient = fmaf(s.weight_decay, value, gradient);
  velocity = fmaf(s.momentum, velocity, gradient);
  value -= rate * (s.nesterov ? fmaf(s.momentum, velocity, gradient) : velocity);
}

__global__ void __launch_bounds__(kThreads) Update(const SgdStep s) {
  if (s.spoiled != nullptr && *s.spoiled != 0) return;
  const float rate = *s.learning_rate;
  const int64_t vectors = s.count / kFour, stride = static_cast<int64_t>(gridDim.x) * kThreads;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  auto* const values = reinterpret_cast<float4*>(s.values);
  auto* const velocities = reinterpret_cast<float4*>(s.velocities);
  const auto* const gradients = reinterpret_cast<const float4*>(s.gradients);
  for (int64_t i = first; i < vectors; i += stride) {
    float4 p = values[i], v = velocities[i];
    const float4 g = gradients[i];
    UpdateOne(p.x, v.x, g.x, s, rate);
    UpdateOne(p.y, v.y, g.y, s, rate);
    UpdateOne(p.z, v.z, g.z, s, rate);
    UpdateOne(p.w, v.w, g.w, s, rate);
    values[i] = p;
    velocities[i] = v;
    if (s.copy != nullptr) {
      static_cast<uint2*>(s.copy)[i] = {Pack(p.x, p.y), Pack(p.z, p.w)};
    }
  }
  for (int64_t i = vectors * kFour + first; i < s.count; i += stride) {
    UpdateOne(s.values[i], s.velocities[i], s.gradients[i], s, rate);
    if (s.copy != nullptr) static_cast<__nv_bfloat16*>(s.copy)[i] = __float2bfloat16_rn(s.values[i]);
  }
}

}  // namespace

cudaError_t SgdUpdate(const SgdStep& step, cudaStream_t stream) {
  const int64_t blocks = (step.count / kFour + kThreads - 1) / kThreads;
  const auto grid = static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, 132 * 16));
  Update<<<grid, kThreads, 0, stream>>>(step);
  return cudaGetLastError();
}

}  // namespace tutti::device
