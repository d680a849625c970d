#include "gather_gradients.h"

#include <algorithm>

#include "vector.cuh"

namespace tutti::device {
namespace {

constexpr int kThreads = 256;
constexpr int kChunk = kThreads * 16;  // elements that a block moves
constexpr int kPieces = 96;            // in a launch: they are its argument, of at most 4 KB

struct Pieces {
  const void* from[kPieces];
  float* to[kPieces];
  int count[kPieces];
  int first_block[kPieces + 1];
  bool bf16[kPieces];
  int pieces;
};

__global__ void __launch_bounds__(kThreads)
    Move(const __grid_constant__ Pieces p, float* __restrict__ not_finite) {
  int low = 0, high = p.pieces - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (p.first_block[middle] <= static_cast<int>(blockIdx.x)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const int begin = (static_cast<int>(blockIdx.x) - p.first_block[low]) * kChunk;
  const int end = min(begin + kChunk, p.count[low]);
  bool bad = false;
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    const float value = p.bf16[low]
                            ? __bfloat162float(static_cast<const __nv_bfloat16*>(p.from[low])[i])
                            : static_cast<const float*>(p.from[low])[i];
    bad |= !isfinite(value);
    p.to[low][i] = value;
  }
  if (bad) *not_finite = 1;
}

}  // namespace

cudaError_t Gather(const Piece* pieces, int count, float* not_finite, cudaStream_t stream) {
  for (int begin = 0; begin < count; begin += kPieces) {
    Pieces p = {};
    p.pieces = std::min(count - begin, kPieces);
    for (int i = 0; i < p.pieces; ++i) {
      const Piece& piece = pieces[begin + i];
      p.from[i] = piece.from;
      p.to[i] = piece.to;
      p.count[i] = piece.count;
      p.bf16[i] = piece.bf16;
      p.first_block[i + 1] = p.first_block[i] + (piece.count + kChunk - 1) / kChunk;
    }
    const int blocks = p.first_block[p.pieces];
    if (blocks > 0) Move<<<blocks, kThreads, 0, stream>>>(p, not_finite);
  }
  return cudaGetLastError();
}

}  // namespace tutti::device
