#include "batch_norm.h"

#include <algorithm>

#include "vector.cuh"

namespace tutti::device {
namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;  // reads of a vector that a thread has begun before it uses the first

// Threads of a block lie over channels (x) and rows (y); a block walks over rows with its
// neighbours in y. The same for all kernels of this file.
struct Layout {
  int64_t rows;
  int channels, vectors;  // vectors: channels / 8
  int across;             // threads over vectors
  dim3 grid;
};

Layout LayoutOf(const Activations& shape) {
  Layout l = {shape.rows, shape.channels, shape.channels / kVector, 1, {}};
  while (l.across < 32 && l.across < l.vectors) l.across *= 2;
  const int columns = (l.vectors + l.across - 1) / l.across;
  const int64_t rows_at_once = static_cast<int64_t>(kThreads / l.across) * kInFlight;
  const int64_t enough = (shape.rows + rows_at_once - 1) / rows_at_once;
  const int64_t most = std::max<int64_t>(1, 132 * 4 / columns);
  l.grid = dim3(columns, static_cast<unsigned>(std::clamp<int64_t>(enough, 1, most)));
  return l;
}

struct Place {
  int vector;      // of channels
  int64_t row, step;
  bool inside;
};

// The first pass over an activation goes from its end to its beginning and the second one back: what
// the cache still has of the layer before, and then of the first pass, is read from there.
__device__ int64_t FromTheEnd(const Layout& l, int64_t row) { return l.rows - 1 - row; }

__device__ Place PlaceOf(const Layout& l) {
  const int x = threadIdx.x % l.across, y = threadIdx.x / l.across;
  const int high = kThreads / l.across;
  const int vector = blockIdx.x * l.across + x;
  return {vector, static_cast<int64_t>(blockIdx.y) * high + y,
          static_cast<int64_t>(gridDim.y) * high, vector < l.vectors};
}

__device__ void LoadChannels(const float* from, int vector, float (&values)[kVector]) {
#pragma unroll
  for (int i = 0; i < kVector; ++i) values[i] = from[vector * kVector + i];
}

// Adds `first` and `second` up over the block's threads of the same channels, in a fixed order, and
// leaves the sums in `partial` [grid.y][2][channels]; what follows adds those up over the blocks.
__device__ void SumOverBlock(const Layout& l, const float (&first)[kVector],
                             const float (&second)[kVector], float* partial) {
  __shared__ float sums[kThreads * 2 * kVector];
  const int high = kThreads / l.across, wide = l.across * kVector;
  const int x = threadIdx.x % l.across, y = threadIdx.x / l.across;
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    sums[(y * 2) * wide + x * kVector + i] = first[i];
    sums[(y * 2 + 1) * wide + x * kVector + i] = second[i];
  }
  __syncthreads();
  for (int column = threadIdx.x; column < 2 * wide; column += kThreads) {
    float sum = 0;
    for (int row = 0; row < high; ++row) sum += sums[row * 2 * wide + column];
    const int which = column / wide, c = blockIdx.x * wide + column % wide;
    if (c < l.channels) {
      partial[(static_cast<int64_t>(blockIdx.y) * 2 + which) * l.channels + c] = sum;
    }
  }
}

// Blocks of the kernels that add up `partial`: eight channels a block, so that a read of 32 bytes
// serves eight threads, and kParts threads a channel.
constexpr int kParts = kThreads / kVector;

// True in the one thread of each channel that has the totals.
__device__ bool SumOverBlocks(const float* __restrict__ partial, int blocks, int channels,
                              float (&total)[2]) {
  __shared__ float sums[2][kParts][kVector];
  const int lane = threadIdx.x % kVector, part = threadIdx.x / kVector;
  const int c = blockIdx.x * kVector + lane;
  float a = 0, b = 0;
#pragma unroll 4
  for (int block = part; block < blocks; block += kParts) {
    a += partial[(static_cast<int64_t>(block) * 2) * channels + c];
    b += partial[(static_cast<int64_t>(block) * 2 + 1) * channels + c];
  }
  sums[0][part][lane] = a;
  sums[1][part][lane] = b;
  for (int half = kParts / 2; half > 0; half /= 2) {
    __syncthreads();
    if (part < half) {
      sums[0][part][lane] += sums[0][part + half][lane];
      sums[1][part][lane] += sums[1][part + half][lane];
    }
  }
  total[0] = sums[0][0][lane];
  total[1] = sums[1][0][lane];
  return part == 0;
}

// What forward leaves per channel for its second pass: y = x scale + offset.
struct Affine {
  float *scale, *offset;
};

// Sums of x - k and of its square, with k the channel's first value: a mean that is large beside
// the deviation costs no digits.
__global__ void __launch_bounds__(kThreads)
    Statistics(const Layout l, const uint4* __restrict__ x, float* __restrict__ partial) {
  const Place place = PlaceOf(l);
  float sum[kVector] = {}, squares[kVector] = {};
  if (place.inside) {
    float shift[kVector];
    Unpack(x[place.vector], shift);
    for (int64_t row = place.row; row < l.rows; row += kInFlight * place.step) {
      uint4 raw[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        const int64_t r = row + i * place.step;
        if (r < l.rows) raw[i] = x[FromTheEnd(l, r) * l.vectors + place.vector];
      }
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
        if (row + i * place.step >= l.rows) break;
        float v[kVector];
        Unpack(raw[i], v);
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          const float d = v[j] - shift[j];
          sum[j] += d;
          squares[j] = fmaf(d, d, squares[j]);
        }
      }
    }
  }
  SumOverBlock(l, sum, squares, partial);
}

__global__ void __launch_bounds__(kThreads)
    FinishStatistics(const float* __restrict__ partial, int blocks, int64_t rows, int channels,
                     const __nv_bfloat16* __restrict__ x, const Normalisation norm,
                     const Affine affine) {
  float total[2];
  if (!SumOverBlocks(partial, blocks, channels, total)) return;
  const int c = blockIdx.x * kVector + threadIdx.x;
  const float n = static_cast<float>(rows);
  const float from_shift = total[0] / n;
  const float mean = __bfloat162float(x[c]) + from_shift;
  const float variance = fmaxf(total[1] / n - from_shift * from_shift, 0.0f);
  const float inverse = rsqrtf(variance + norm.epsilon);
  if (c == 0 && norm.batches != nullptr) ++*norm.batches;
  norm.mean[c] = mean;
  norm.inverse_deviation[c] = inverse;
  norm.running_mean[c] += norm.momentum * (mean - norm.running_mean[c]);
  norm.running_var[c] +=
      norm.momentum * (variance * (n / fmaxf(n - 1, 1.0f)) - norm.running_var[c]);
  const float scale = norm.weight[c] * inverse;
  affine.scale[c] = scale;
  affine.offset[c] = norm.bias[c] - mean * scale;
}

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

// dx = a dy + b x + c.
struct Coefficients {
  float *a, *b, *c;
};

// The parts of a gradient that a kernel reads.
struct Sources {
  const uint4 *dy, *dy2, *x;
  const uint8_t* positive;
};

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

__global__ void __launch_bounds__(kThreads)
    FinishSums(const float* __restrict__ partial, int blocks, int64_t rows, int channels,
               const Normalisation norm, float* __restrict__ dweight, float* __restrict__ dbias,
               const Coefficients to) {
  float total[2];
  if (!SumOverBlocks(partial, blocks, channels, total)) return;
  const int c = blockIdx.x * kVector + threadIdx.x;
  const float inverse = norm.inverse_deviation[c], n = static_cast<float>(rows);
  dbias[c] = total[0];
  dweight[c] = total[1] * inverse;
  const float a = norm.weight[c] * inverse;
  const float b = -a * inverse * (total[1] * inverse) / n;
  to.a[c] = a;
  to.b[c] = b;
  to.c[c] = -a * total[0] / n - b * norm.mean[c];
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

// Behind the blocks' partial sums.
float* PerChannel(const Layout& l, float* scratch, int which) {
  return scratch + static_cast<int64_t>(l.grid.y) * 2 * l.channels +
         static_cast<int64_t>(which) * l.channels;
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
