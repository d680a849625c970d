#include "batch_norm_cuda.cuh"
#include "batch_norm_pair.h"

namespace tutti::device {
namespace {

constexpr int kInFlightOfPair = 2;  // of more arrays than one normalisation has

__global__ void __launch_bounds__(kThreads)
    ApplyPair(const Layout l, const uint4* __restrict__ x, const uint4* __restrict__ x2,
              uint4* __restrict__ y, uint8_t* __restrict__ positive, const Affine affine,
              const Affine affine2) {
  const Place place = PlaceOf(l);
  if (!place.inside) return;
  float scale[kVector], scale2[kVector], offset[kVector], offset2[kVector];
  LoadChannels(affine.scale, place.vector, scale);
  LoadChannels(affine2.scale, place.vector, scale2);
  LoadChannels(affine.offset, place.vector, offset);
  LoadChannels(affine2.offset, place.vector, offset2);
  for (int64_t row = place.row; row < l.rows; row += kInFlightOfPair * place.step) {
    uint4 raw[kInFlightOfPair], raw2[kInFlightOfPair];
#pragma unroll
    for (int i = 0; i < kInFlightOfPair; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      raw[i] = x[r * l.vectors + place.vector];
      raw2[i] = x2[r * l.vectors + place.vector];
    }
#pragma unroll
    for (int i = 0; i < kInFlightOfPair; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      float v[kVector], v2[kVector];
      Unpack(raw[i], v);
      Unpack(raw2[i], v2);
      unsigned bits = 0;
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        v[j] = fmaf(v[j], scale[j], offset[j]) + fmaf(v2[j], scale2[j], offset2[j]);
        if (v[j] > 0) bits |= 1u << j;
        v[j] = v[j] < 0 ? 0.0f : v[j];  // a NaN stays one
      }
      y[r * l.vectors + place.vector] = Pack(v);
      positive[r * l.vectors + place.vector] = bits;
    }
  }
}

// The gradient of a vector of y, dy + dy2, where y was positive; elsewhere there is none.
template <bool kTwo>
__device__ uint4 MaskedGradient(const uint4& dy, const uint4& dy2, unsigned positive) {
  float d[kVector];
  Unpack(dy, d);
  if constexpr (kTwo) {
    float second[kVector];
    Unpack(dy2, second);
#pragma unroll
    for (int j = 0; j < kVector; ++j) d[j] += second[j];
  }
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    if (!(positive >> j & 1)) d[j] = 0;
  }
  return Pack(d);
}

template <bool kTwo>
__global__ void __launch_bounds__(kThreads)
    SumsOfPair(const Layout l, const Sources from, const uint4* __restrict__ x2,
               uint4* __restrict__ masked, const float* __restrict__ mean_of_x,
               const float* __restrict__ mean_of_x2, float* __restrict__ partial,
               float* __restrict__ partial2) {
  const Place place = PlaceOf(l);
  float sum[kVector] = {}, product[kVector] = {}, product2[kVector] = {};
  if (place.inside) {
    float mean[kVector], mean2[kVector];
    LoadChannels(mean_of_x, place.vector, mean);
    LoadChannels(mean_of_x2, place.vector, mean2);
    for (int64_t row = place.row; row < l.rows; row += kInFlightOfPair * place.step) {
      uint4 dy[kInFlightOfPair], dy2[kInFlightOfPair], raw[kInFlightOfPair], raw2[kInFlightOfPair];
      unsigned bits[kInFlightOfPair];
#pragma unroll
      for (int i = 0; i < kInFlightOfPair; ++i) {
        const int64_t r = row + i * place.step;
        if (r >= l.rows) break;
        const int64_t at = FromTheEnd(l, r) * l.vectors + place.vector;
        dy[i] = from.dy[at];
        if constexpr (kTwo) dy2[i] = from.dy2[at];
        raw[i] = from.x[at];
        raw2[i] = x2[at];
        bits[i] = from.positive[at];
      }
#pragma unroll
      for (int i = 0; i < kInFlightOfPair; ++i) {
        const int64_t r = row + i * place.step;
        if (r >= l.rows) break;
        // The second pass reads these: both see the same rounding.
        const uint4 packed = MaskedGradient<kTwo>(dy[i], dy2[i], bits[i]);
        float d[kVector], v[kVector], v2[kVector];
        masked[FromTheEnd(l, r) * l.vectors + place.vector] = packed;
        Unpack(packed, d);
        Unpack(raw[i], v);
        Unpack(raw2[i], v2);
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          sum[j] += d[j];
          product[j] = fmaf(d[j], v[j] - mean[j], product[j]);
          product2[j] = fmaf(d[j], v2[j] - mean2[j], product2[j]);
        }
      }
    }
  }
  SumOverBlock(l, sum, product, partial);
  __syncthreads();  // the same shared memory
  SumOverBlock(l, sum, product2, partial2);
}

__global__ void __launch_bounds__(kThreads)
    InputGradientsOfPair(const Layout l, const uint4* __restrict__ masked,
                         const uint4* __restrict__ x, const uint4* __restrict__ x2,
                         uint4* __restrict__ dx, uint4* __restrict__ dx2, const Coefficients with,
                         const Coefficients with2) {
  const Place place = PlaceOf(l);
  if (!place.inside) return;
  float a[kVector], b[kVector], c[kVector], a2[kVector], b2[kVector], c2[kVector];
  LoadChannels(with.a, place.vector, a);
  LoadChannels(with.b, place.vector, b);
  LoadChannels(with.c, place.vector, c);
  LoadChannels(with2.a, place.vector, a2);
  LoadChannels(with2.b, place.vector, b2);
  LoadChannels(with2.c, place.vector, c2);
  for (int64_t row = place.row; row < l.rows; row += kInFlightOfPair * place.step) {
    uint4 dy[kInFlightOfPair], raw[kInFlightOfPair], raw2[kInFlightOfPair];
#pragma unroll
    for (int i = 0; i < kInFlightOfPair; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      dy[i] = masked[r * l.vectors + place.vector];
      raw[i] = x[r * l.vectors + place.vector];
      raw2[i] = x2[r * l.vectors + place.vector];
    }
#pragma unroll
    for (int i = 0; i < kInFlightOfPair; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      float d[kVector], v[kVector], v2[kVector];
      Unpack(dy[i], d);
      Unpack(raw[i], v);
      Unpack(raw2[i], v2);
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        v[j] = fmaf(a[j], d[j], fmaf(b[j], v[j], c[j]));
        v2[j] = fmaf(a2[j], d[j], fmaf(b2[j], v2[j], c2[j]));
      }
      dx[r * l.vectors + place.vector] = Pack(v);
      dx2[r * l.vectors + place.vector] = Pack(v2);
    }
  }
}

}  // namespace

cudaError_t PairForward(const Activations& shape, const Pair& pair, void* y, uint8_t* positive,
                        float* scratch, cudaStream_t stream) {
  const Layout l = LayoutOf(shape);
  const void* const x[2] = {pair.x, pair.x2};
  const Normalisation* const norms[2] = {&pair.norm, &pair.norm2};
  Affine affine[2];
  for (int i = 0; i < 2; ++i) {
    float* const own = scratch + i * ScratchFloats(shape);
    affine[i] = {PerChannel(l, own, 0), PerChannel(l, own, 1)};
    Statistics<<<l.grid, kThreads, 0, stream>>>(l, static_cast<const uint4*>(x[i]), own);
    FinishStatistics<<<l.vectors, kThreads, 0, stream>>>(
        own, static_cast<int>(l.grid.y), l.rows, l.channels,
        static_cast<const __nv_bfloat16*>(x[i]), *norms[i], affine[i]);
  }
  ApplyPair<<<l.grid, kThreads, 0, stream>>>(
      l, static_cast<const uint4*>(x[0]), static_cast<const uint4*>(x[1]), static_cast<uint4*>(y),
      positive, affine[0], affine[1]);
  return cudaGetLastError();
}

cudaError_t PairBackward(const Activations& shape, const Pair& pair, const PairGradients& g,
                         float* scratch, cudaStream_t stream) {
  const Layout l = LayoutOf(shape);
  const Sources from = {static_cast<const uint4*>(g.dy), static_cast<const uint4*>(g.dy2),
                        static_cast<const uint4*>(pair.x), g.positive};
  const auto* const x2 = static_cast<const uint4*>(pair.x2);
  auto* const masked = static_cast<uint4*>(g.masked);
  float* const own[2] = {scratch, scratch + ScratchFloats(shape)};
  const auto sums = g.dy2 != nullptr ? SumsOfPair<true> : SumsOfPair<false>;
  sums<<<l.grid, kThreads, 0, stream>>>(l, from, x2, masked, pair.norm.mean, pair.norm2.mean,
                                        own[0], own[1]);
  const Normalisation* const norms[2] = {&pair.norm, &pair.norm2};
  float* const weights[2] = {g.weight, g.weight2};
  float* const biases[2] = {g.bias, g.bias2};
  Coefficients with[2];
  for (int i = 0; i < 2; ++i) {
    with[i] = {PerChannel(l, own[i], 0), PerChannel(l, own[i], 1), PerChannel(l, own[i], 2)};
    FinishSums<<<l.vectors, kThreads, 0, stream>>>(own[i], static_cast<int>(l.grid.y), l.rows,
                                                   l.channels, *norms[i], weights[i], biases[i],
                                                   with[i]);
  }
  InputGradientsOfPair<<<l.grid, kThreads, 0, stream>>>(
      l, masked, from.x, x2, static_cast<uint4*>(g.dx), static_cast<uint4*>(g.dx2), with[0],
      with[1]);
  return cudaGetLastError();
}

}  // namespace tutti::device
