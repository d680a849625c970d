#include "max_pool.h"
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

// A block has one row of the input. An even row lies in one window's middle, an odd one in the last
// row of a window and the first of the next; likewise for columns.
__global__ void __launch_bounds__(kThreads)
    Backward(const Pooling s, int out_height, int out_width, const uint4* __restrict__ dy,
             const uint2* __restrict__ taken, uint4* __restrict__ dx) {
  const int vectors = s.channels / kVector;
  const int image = blockIdx.x / s.height, h = blockIdx.x % s.height;
  for (int i = threadIdx.x; i < s.width * vectors; i += kThreads) {
    const int w = i / vectors, vector = i % vectors;
    float sum[kVector] = {};
    for (int row = h / 2; row <= (h + 1) / 2 && row < out_height; ++row) {
      for (int column = w / 2; column <= (w + 1) / 2 && column < out_width; ++column) {
        const unsigned tap = (h - 2 * row + 1) * 3 + (w - 2 * column + 1);
        const int64_t at =
            ((static_cast<int64_t>(image) * out_height + row) * out_width + column) * vectors +
            vector;
        const uint2 t = taken[at];
        float d[kVector];
        Unpack(dy[at], d);
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          const unsigned which = ((j < 4 ? t.x : t.y) >> (8 * (j % 4))) & 0xff;
          if (which == tap) sum[j] += d[j];
        }
      }
    }
    dx[static_cast<int64_t>(blockIdx.x) * s.width * vectors + i] = Pack(sum);
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
  Backward<<<s.images * s.height, kThreads, 0, stream>>>(
      s, s.out_height(), s.out_width(), static_cast<const uint4*>(dy),
      reinterpret_cast<const uint2*>(taken), static_cast<uint4*>(dx));
  return cudaGetLastError();
}

}  // namespace tutti::device
