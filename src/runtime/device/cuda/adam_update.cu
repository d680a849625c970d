#include <cmath>

#include "adam_update.h"
#include "norms.cuh"

namespace tutti::device {
namespace {

// The coefficients of one update.
struct Factors {
  float beta1, beta2, of_gradient, of_square;
  float mean, root, epsilon;  // mean: 1 / (1 - beta1^t)
};

Factors FactorsOf(const AdamStep& s) {
  const auto t = static_cast<double>(s.t);
  return {.beta1 = static_cast<float>(s.beta1),
          .beta2 = static_cast<float>(s.beta2),
          .of_gradient = static_cast<float>(1 - s.beta1),
          .of_square = static_cast<float>(1 - s.beta2),
          .mean = static_cast<float>(1 / (1 - std::pow(s.beta1, t))),
          .root = static_cast<float>(1 / std::sqrt(1 - std::pow(s.beta2, t))),
          .epsilon = static_cast<float>(s.epsilon)};
}

__device__ void Accumulate(float& first, float& second, float gradient, const Factors& f) {
  first = f.beta1 * first + f.of_gradient * gradient;
  second = f.beta2 * second + f.of_square * gradient * gradient;
}

// What a value is moved by, times the rate; `decay` is its range's.
__device__ float UpdateOf(float value, float first, float second, const Factors& f, float decay) {
  return f.mean * first / (sqrtf(second) * f.root + f.epsilon) + decay * value;
}

__global__ void __launch_bounds__(kChunkThreads)
    AdamW(const AdamStep s, const Factors f, float rate) {
  if (FoundNonfinite(s)) return;
  const float decay = DecayHere(s);
  const auto update = [&](float& value, float& first, float& second, float gradient) {
    Accumulate(first, second, gradient, f);
    value -= rate * UpdateOf(value, first, second, f, decay);
  };
  UpdateChunk(s, update, s.first, s.second);
}

// The moments, and what the ratios are made of.
__global__ void __launch_bounds__(kChunkThreads)
    LambMoments(const AdamStep s, const Factors f, double* __restrict__ partial) {
  if (FoundNonfinite(s)) return;
  const float decay = DecayHere(s);
  double values = 0, updates = 0;
  const auto accumulate = [&](float value, float& first, float& second, float gradient) {
    Accumulate(first, second, gradient, f);
    values += Square(value);
    updates += Square(UpdateOf(value, first, second, f, decay));
  };
  ForChunk(
      s.chunks,
      [&](int64_t i) {
        float4 m = Fours(s.first)[i], v = Fours(s.second)[i];
        const float4 p = Fours(s.values)[i], g = Fours(s.gradients)[i];
        accumulate(p.x, m.x, v.x, g.x);
        accumulate(p.y, m.y, v.y, g.y);
        accumulate(p.z, m.z, v.z, g.z);
        accumulate(p.w, m.w, v.w, g.w);
        Fours(s.first)[i] = m;
        Fours(s.second)[i] = v;
      },
      [&](int64_t i) { accumulate(s.values[i], s.first[i], s.second[i], s.gradients[i]); });
  SumOverChunk(values, updates, partial);
}

__global__ void __launch_bounds__(kChunkThreads)
    LambApply(const AdamStep s, const Factors f, const double* __restrict__ ratios) {
  if (FoundNonfinite(s)) return;
  const float decay = DecayHere(s);
  const float rate = Finite(s.learning_rate * ratios[s.chunks.ranges[blockIdx.x]]);
  ForChunk(
      s.chunks,
      [&](int64_t i) {
        float4 p = Fours(s.values)[i];
        const float4 m = Fours(s.first)[i], v = Fours(s.second)[i];
        p.x -= rate * UpdateOf(p.x, m.x, v.x, f, decay);
        p.y -= rate * UpdateOf(p.y, m.y, v.y, f, decay);
        p.z -= rate * UpdateOf(p.z, m.z, v.z, f, decay);
        p.w -= rate * UpdateOf(p.w, m.w, v.w, f, decay);
        Fours(s.values)[i] = p;
        StoreCopy(s.copy, i, p);
      },
      [&](int64_t i) {
        s.values[i] -= rate * UpdateOf(s.values[i], s.first[i], s.second[i], f, decay);
        StoreCopy(s.copy, i, s.values[i]);
      });
}

}  // namespace

cudaError_t AdamWUpdate(const AdamStep& step, cudaStream_t stream) {
  AdamW<<<step.chunks.chunks, kChunkThreads, 0, stream>>>(step, FactorsOf(step),
                                                          static_cast<float>(step.learning_rate));
  return cudaGetLastError();
}

cudaError_t LambUpdate(const AdamStep& step, double* scratch, cudaStream_t stream) {
  const ChunkTable& chunks = step.chunks;
  const Factors factors = FactorsOf(step);
  double* const ratios = scratch + 2 * static_cast<int64_t>(chunks.chunks);
  LambMoments<<<chunks.chunks, kChunkThreads, 0, stream>>>(step, factors, scratch);
  Ratios<<<chunks.count, kChunkThreads, 0, stream>>>(chunks, scratch, 1, 0, ratios);
  LambApply<<<chunks.chunks, kChunkThreads, 0, stream>>>(step, factors, ratios);
  return cudaGetLastError();
}

}  // namespace tutti::device
