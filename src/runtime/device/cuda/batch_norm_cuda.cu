#include "batch_norm_cuda.cuh"

namespace tutti::device {
namespace {

template <bool kRelu, bool kResidual>
__global__ void __launch_bounds__(kThreads)
    Apply(const Layout l, const uint4* __restrict__ x, const uint4* __restrict__ residual,
          uint4* __restrict__ y, uint8_t* __restrict__ positive, const Affine affine) {
  const Place place = PlaceOf(l);
  if (!place.inside) return;
  float scale[kVector], offset[kVector];
  LoadChannels(affine.scale, place.vector, scale);
  LoadChannels(affine.offset, place.vector, offset);
  for (int64_t row = place.row; row < l.rows; row += kInFlight * place.step) {
    uint4 raw[kInFlight], other[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      raw[i] = x[r * l.vectors + place.vector];
      if constexpr (kResidual) other[i] = residual[r * l.vectors + place.vector];
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      float v[kVector], add[kVector];
      Unpack(raw[i], v);
      if constexpr (kResidual) Unpack(other[i], add);
      unsigned bits = 0;
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        v[j] = fmaf(v[j], scale[j], offset[j]);
        if constexpr (kResidual) v[j] += add[j];
        if constexpr (kRelu) {
          if (v[j] > 0) bits |= 1u << j;
          v[j] = v[j] < 0 ? 0.0f : v[j];  // a NaN stays one
        }
      }
      y[r * l.vectors + place.vector] = Pack(v);
      if constexpr (kRelu && kResidual) positive[r * l.vectors + place.vector] = bits;
    }
  }
}

// What is left of dy where y was not positive: nothing.
enum class Mask { kNone, kFromX, kBits };

template <Mask kMask>
__device__ void ApplyMask(float (&d)[kVector], const float (&x)[kVector],
                          const float (&scale)[kVector], const float (&offset)[kVector],
                          unsigned bits) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    if constexpr (kMask == Mask::kFromX) {
      if (!(fmaf(x[j], scale[j], offset[j]) > 0)) d[j] = 0;
    } else if constexpr (kMask == Mask::kBits) {
      if (!(bits >> j & 1)) d[j] = 0;
    }
  }
}

template <Mask kMask>
__device__ void LoadAffine(const Normalisation& norm, int vector, float (&scale)[kVector],
                           float (&offset)[kVector]) {
  if constexpr (kMask == Mask::kFromX) {
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const int c = vector * kVector + j;
      scale[j] = norm.weight[c] * norm.inverse_deviation[c];
      offset[j] = norm.bias[c] - norm.mean[c] * scale[j];
    }
  }
}

// Sums of dy and of dy (x - mean), masked; what is summed goes to `masked` where that is wanted.
template <Mask kMask, bool kTwo, bool kKeep>
__global__ void __launch_bounds__(kThreads)
    Sums(const Layout l, const Sources from, uint4* __restrict__ masked, const Normalisation norm,
         float* __restrict__ partial) {
  const Place place = PlaceOf(l);
  float sum[kVector] = {}, product[kVector] = {};
  if (place.inside) {
    float mean[kVector], scale[kVector], offset[kVector];
    LoadChannels(norm.mean, place.vector, mean);
    LoadAffine<kMask>(norm, place.vector, scale, offset);
    for (int64_t row = place.row; row < l.rows; row += kInFlight * place.step) {
      uint4 dy[kInFlight], dy2[kInFlight], x[kInFlight];
      unsigned bits[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        const int64_t r = row + i * place.step;
        if (r >= l.rows) break;
        const int64_t at = FromTheEnd(l, r) * l.vectors + place.vector;
        dy[i] = from.dy[at];
        if constexpr (kTwo) dy2[i] = from.dy2[at];
        x[i] = from.x[at];
        if constexpr (kMask == Mask::kBits) bits[i] = from.positive[at];
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        const int64_t r = row + i * place.step;
        if (r >= l.rows) break;
        float d[kVector], v[kVector];
        Unpack(dy[i], d);
        if constexpr (kTwo) {
          float second[kVector];
          Unpack(dy2[i], second);
#pragma unroll
          for (int j = 0; j < kVector; ++j) d[j] += second[j];
        }
        Unpack(x[i], v);
        ApplyMask<kMask>(d, v, scale, offset, kMask == Mask::kBits ? bits[i] : 0);
        if constexpr (kKeep) {
          // The second pass reads these: both see the same rounding.
          const uint4 packed = Pack(d);
          masked[FromTheEnd(l, r) * l.vectors + place.vector] = packed;
          Unpack(packed, d);
        }
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          sum[j] += d[j];
          product[j] = fmaf(d[j], v[j] - mean[j], product[j]);
        }
      }
    }
  }
  SumOverBlock(l, sum, product, partial);
}

template <Mask kMask>
__global__ void __launch_bounds__(kThreads)
    InputGradient(const Layout l, const Sources from, uint4* __restrict__ dx,
                  const Normalisation norm, const Coefficients with) {
  const Place place = PlaceOf(l);
  if (!place.inside) return;
  float a[kVector], b[kVector], c[kVector], scale[kVector], offset[kVector];
  LoadChannels(with.a, place.vector, a);
  LoadChannels(with.b, place.vector, b);
  LoadChannels(with.c, place.vector, c);
  LoadAffine<kMask>(norm, place.vector, scale, offset);
  for (int64_t row = place.row; row < l.rows; row += kInFlight * place.step) {
    uint4 dy[kInFlight], x[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      dy[i] = from.dy[r * l.vectors + place.vector];
      x[i] = from.x[r * l.vectors + place.vector];
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int64_t r = row + i * place.step;
      if (r >= l.rows) break;
      float d[kVector], v[kVector];
      Unpack(dy[i], d);
      Unpack(x[i], v);
      ApplyMask<kMask>(d, v, scale, offset, 0);
#pragma unroll
      for (int j = 0; j < kVector; ++j) d[j] = fmaf(a[j], d[j], fmaf(b[j], v[j], c[j]));
      dx[r * l.vectors + place.vector] = Pack(d);
    }
  }
}

}  // namespace

int64_t ScratchFloats(const Activations& shape) {
  const Layout l = LayoutOf(shape);
  return (static_cast<int64_t>(l.grid.y) * 2 + 3) * l.channels;
}

cudaError_t BatchNormForward(const Activations& shape, const void* x, const void* residual, void* y,
                             uint8_t* positive, bool relu, const Normalisation& norm,
                             float* scratch, cudaStream_t stream) {
  const Layout l = LayoutOf(shape);
  const auto* in = static_cast<const uint4*>(x);
  const auto* add = static_cast<const uint4*>(residual);
  auto* out = static_cast<uint4*>(y);
  const Affine affine = {PerChannel(l, scratch, 0), PerChannel(l, scratch, 1)};
  Statistics<<<l.grid, kThreads, 0, stream>>>(l, in, scratch);
  FinishStatistics<<<l.vectors, kThreads, 0, stream>>>(
      scratch, static_cast<int>(l.grid.y), l.rows, l.channels,
      static_cast<const __nv_bfloat16*>(x), norm, affine);
  if (residual != nullptr && relu) {
    Apply<true, true><<<l.grid, kThreads, 0, stream>>>(l, in, add, out, positive, affine);
  } else if (residual != nullptr) {
    Apply<false, true><<<l.grid, kThreads, 0, stream>>>(l, in, add, out, positive, affine);
  } else if (relu) {
    Apply<true, false><<<l.grid, kThreads, 0, stream>>>(l, in, add, out, positive, affine);
  } else {
    Apply<false, false><<<l.grid, kThreads, 0, stream>>>(l, in, add, out, positive, affine);
  }
  return cudaGetLastError();
}

cudaError_t BatchNormBackward(const Activations& shape, const void* x, bool relu,
                              const Normalisation& norm, const Gradients& g, float* scratch,
                              cudaStream_t stream) {
  const Layout l = LayoutOf(shape);
  const Sources from = {static_cast<const uint4*>(g.dy), static_cast<const uint4*>(g.dy2),
                        static_cast<const uint4*>(x), g.positive};
  auto* masked = static_cast<uint4*>(g.masked);
  auto* dx = static_cast<uint4*>(g.dx);
  const Coefficients with = {PerChannel(l, scratch, 0), PerChannel(l, scratch, 1),
                             PerChannel(l, scratch, 2)};
  const Mask mask = !relu                   ? Mask::kNone
                    : g.positive != nullptr ? Mask::kBits
                                            : Mask::kFromX;
  const auto sums = [&]<Mask kMask, bool kTwo, bool kKeep>() {
    Sums<kMask, kTwo, kKeep><<<l.grid, kThreads, 0, stream>>>(l, from, masked, norm, scratch);
  };
  const auto choose = [&]<Mask kMask>() {
    if (g.dy2 != nullptr) return sums.template operator()<kMask, true, true>();
    if (masked != nullptr) return sums.template operator()<kMask, false, true>();
    sums.template operator()<kMask, false, false>();
  };
  if (mask == Mask::kNone) choose.template operator()<Mask::kNone>();
  if (mask == Mask::kFromX) choose.template operator()<Mask::kFromX>();
  if (mask == Mask::kBits) choose.template operator()<Mask::kBits>();
  FinishSums<<<l.vectors, kThreads, 0, stream>>>(scratch, static_cast<int>(l.grid.y), l.rows,
                                                 l.channels, norm, g.weight, g.bias, with);
  // Where the masked gradient was kept, it needs no mask any more.
  Sources second = from;
  if (masked != nullptr) second.dy = masked;
  if (masked != nullptr || mask == Mask::kNone) {
    InputGradient<Mask::kNone><<<l.grid, kThreads, 0, stream>>>(l, second, dx, norm, with);
  } else if (mask == Mask::kFromX) {
    InputGradient<Mask::kFromX><<<l.grid, kThreads, 0, stream>>>(l, second, dx, norm, with);
  } else {
    return cudaErrorInvalidValue;  // bits without a residual to have made them
  }
  return cudaGetLastError();
}

}  // namespace tutti::device
