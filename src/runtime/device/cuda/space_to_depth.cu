#include <algorithm>

#include "space_to_depth.h"
#include "vector.cuh"

namespace tutti::device {
namespace {

constexpr int kThreads = 256;
constexpr int kColors = 3;

// A thread has one block. Neighbours read neighbouring pixels: the cache makes whole lines of it.
__global__ void __launch_bounds__(kThreads)
    Rearrange(const Blocking s, const uint16_t* __restrict__ input, uint4* __restrict__ blocks) {
  const int64_t count = static_cast<int64_t>(s.images) * s.out_height * s.out_width;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < count;
       at += stride) {
    const int column = 2 * (static_cast<int>(at % s.out_width) - s.before);
    const int64_t line = at / s.out_width;
    const int row = 2 * (static_cast<int>(line % s.out_height) - s.before);
    const int64_t image = line / s.out_height;
    unsigned values[4 * kColors];
#pragma unroll
    for (int pixel = 0; pixel < 4; ++pixel) {
      const int h = row + pixel / 2, w = column + pixel % 2;
      const bool inside = h >= 0 && h < s.height && w >= 0 && w < s.width;
      const int64_t from = ((image * s.height + h) * s.width + w) * kColors;
#pragma unroll
      for (int c = 0; c < kColors; ++c) {
        values[pixel * kColors + c] = inside ? input[from + c] : 0;
      }
    }
    unsigned words[8] = {};
#pragma unroll
    for (int i = 0; i < 2 * kColors; ++i) words[i] = values[2 * i] | values[2 * i + 1] << 16;
    blocks[2 * at] = {words[0], words[1], words[2], words[3]};
    blocks[2 * at + 1] = {words[4], words[5], 0, 0};
  }
}

}  // namespace

cudaError_t SpaceToDepth(const Blocking& shape, const void* input, void* blocks,
                         cudaStream_t stream) {
  const int64_t count = static_cast<int64_t>(shape.images) * shape.out_height * shape.out_width;
  const auto grid = static_cast<unsigned>(
      std::clamp<int64_t>((count + kThreads - 1) / kThreads, 1, int64_t{1} << 20));
  Rearrange<<<grid, kThreads, 0, stream>>>(shape, static_cast<const uint16_t*>(input),
                                           static_cast<uint4*>(blocks));
  return cudaGetLastError();
}

}  // namespace tutti::device
