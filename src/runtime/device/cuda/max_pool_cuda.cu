#include "max_pool_cuda.h"
#include "vector.cuh"

namespace tutti::device {
namespace {

constexpr int kThreads = 256;

// A block has one row of the output.
__global__ void __launch_bounds__(kThreads)
    Forward(const Pooling s, int out_height, int out_width, const uint4* __restrict__ x,
            uint4* __restrict__ y, uint2* __restrict__ taken) {
  const int vectors = s.channels / kVector;
  const int image = blockIdx.x / out_height, row = blockIdx.x % out_height;
  for (int i = threadIdx.x; i < out_width * vectors; i += kThreads) {
    const int column = i / vectors, vector = i % vectors;
    float best[kVector];
    unsigned which[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) best[j] = -INFINITY, which[j] = 4;  // the middle is inside
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
      const int h = 2 * row - 1 + tap / 3, w = 2 * column - 1 + tap % 3;
      if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
      float v[kVector];
      Unpack(x[((static_cast<int64_t>(image) * s.height + h) * s.width + w) * vectors + vector], v);
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        if (v[j] > best[j] || isnan(v[j])) best[j] = v[j], which[j] = tap;
      }
    }
    const int64_t at = static_cast<int64_t>(blockIdx.x) * out_width * vectors + i;
    y[at] = Pack(best);
    taken[at] = {which[0] | which[1] << 8 | which[2] << 16 | which[3] << 24,
                 which[4] | which[5] << 8 | which[6] << 16 | which[7] << 24};
  }
}

// What a window passes back to one of its nine taps is added to `sums`.
__device__ void AddTap(const float (&d)[kVector], const uint2& taken, unsigned tap,
                       float (&sums)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const unsigned which = ((j < 4 ? taken.x : taken.y) >> (8 * (j % 4))) & 0xff;
    if (which == tap) sums[j] += d[j];
  }
}

// A thread has 2 x 2 pixels of the input, from an even row and column on, which lie in four
// windows: all of them in the first, the odd column in the one to its right as well, the odd row in
// the one below, and the odd pixel in the last.
__global__ void __launch_bounds__(kThreads)
    Backward(const Pooling s, int out_height, int out_width, const uint4* __restrict__ dy,
             const uint2* __restrict__ taken, uint4* __restrict__ dx) {
  const int vectors = s.channels / kVector;
  const int image = blockIdx.x / out_height, row = blockIdx.x % out_height;
  for (int i = threadIdx.x; i < out_width * vectors; i += kThreads) {
    const int column = i / vectors, vector = i % vectors;
    uint4 raw[4] = {};
    uint2 which[4];
#pragma unroll
    for (int window = 0; window < 4; ++window) {
      const int r = row + window / 2, c = column + window % 2;
      which[window] = {~0u, ~0u};  // no tap
      if (r >= out_height || c >= out_width) continue;
      const int64_t at =
          ((static_cast<int64_t>(image) * out_height + r) * out_width + c) * vectors + vector;
      raw[window] = dy[at];
      which[window] = taken[at];
    }
    float sums[4][kVector] = {};
#pragma unroll
    for (int window = 0; window < 4; ++window) {
      float d[kVector];
      Unpack(raw[window], d);
#pragma unroll
      for (int pixel = 0; pixel < 4; ++pixel) {
        const int h = pixel / 2 + 1 - 2 * (window / 2), w = pixel % 2 + 1 - 2 * (window % 2);
        if (h >= 0 && w >= 0) AddTap(d, which[window], 3 * h + w, sums[pixel]);
      }
    }
#pragma unroll
    for (int pixel = 0; pixel < 4; ++pixel) {
      const int h = 2 * row + pixel / 2, w = 2 * column + pixel % 2;
      if (h >= s.height || w >= s.width) continue;
      dx[((static_cast<int64_t>(image) * s.height + h) * s.width + w) * vectors + vector] =
          Pack(sums[pixel]);
    }
  }
}

}  // namespace

cudaError_t MaxPoolForward(const Pooling& s, const void* x, void* y, uint8_t* taken,
                           cudaStream_t stream) {
  const int blocks = s.images * s.out_height();
  Forward<<<blocks, kThreads, 0, stream>>>(s, s.out_height(), s.out_width(),
                                           static_cast<const uint4*>(x), static_cast<uint4*>(y),
                                           reinterpret_cast<uint2*>(taken));
  return cudaGetLastError();
}

cudaError_t MaxPoolBackward(const Pooling& s, const void* dy, const uint8_t* taken, void* dx,
                            cudaStream_t stream) {
  Backward<<<s.images * s.out_height(), kThreads, 0, stream>>>(
      s, s.out_height(), s.out_width(), static_cast<const uint4*>(dy),
      reinterpret_cast<const uint2*>(taken), static_cast<uint4*>(dx));
  return cudaGetLastError();
}

}  // namespace tutti::device
