// What the kernels of batch-norm share: how threads lie over an activation, how sums are taken, and
// what is done by channel between two passes.
#pragma once

#include <algorithm>

#include "batch_norm_cuda.h"
#include "vector.cuh"

namespace tutti::device {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;  // reads of a vector that a thread has begun before it uses the first

// Threads of a block lie over channels (x) and rows (y); a block walks over rows with its
// neighbours in y. The same for all of these kernels.
struct Layout {
  int64_t rows;
  int channels, vectors;  // vectors: channels / 8
  int across;             // threads over vectors
  dim3 grid;
};

static inline Layout LayoutOf(const Activations& shape) {
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
  int vector;  // of channels
  int64_t row, step;
  bool inside;
};

// The first pass over an activation goes from its end to its beginning and the second one back:
// what the cache still has of the layer before, and then of the first pass, is read from there.
static __device__ int64_t FromTheEnd(const Layout& l, int64_t row) { return l.rows - 1 - row; }

static __device__ Place PlaceOf(const Layout& l) {
  const int x = threadIdx.x % l.across, y = threadIdx.x / l.across;
  const int high = kThreads / l.across;
  const int vector = blockIdx.x * l.across + x;
  return {vector, static_cast<int64_t>(blockIdx.y) * high + y,
          static_cast<int64_t>(gridDim.y) * high, vector < l.vectors};
}

static __device__ void LoadChannels(const float* from, int vector, float (&values)[kVector]) {
#pragma unroll
  for (int i = 0; i < kVector; ++i) values[i] = from[vector * kVector + i];
}

// Adds `first` and `second` up over the block's threads of the same channels, in a fixed order, and
// leaves the sums in `partial` [grid.y][2][channels]; what follows adds those up over the blocks.
static __device__ void SumOverBlock(const Layout& l, const float (&first)[kVector],
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

// Returns true in the one thread of each channel that has the totals.
static __device__ bool SumOverBlocks(const float* __restrict__ partial, int blocks, int channels,
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
static __global__ void __launch_bounds__(kThreads)
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

static __global__ void __launch_bounds__(kThreads)
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

// dx = a dy + b x + c.
struct Coefficients {
  float *a, *b, *c;
};

// The parts of a gradient that a kernel reads.
struct Sources {
  const uint4 *dy, *dy2, *x;
  const uint8_t* positive;
};

static __global__ void __launch_bounds__(kThreads)
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

// Returns the place behind the blocks' partial sums.
static inline float* PerChannel(const Layout& l, float* scratch, int which) {
  return scratch + static_cast<int64_t>(l.grid.y) * 2 * l.channels +
         static_cast<int64_t>(which) * l.channels;
}

}  // namespace tutti::device
