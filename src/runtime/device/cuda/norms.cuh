// The ratios of LARS and LAMB, one a range, from sums of squares of its chunks, which are added
// up in a fixed order.
#pragma once

#include "chunk.cuh"

namespace tutti::device {

__device__ inline double Square(float value) { return static_cast<double>(value) * value; }

// Leaves the sums over the block at its chunk's place.
__device__ inline void SumOverChunk(double values, double updates, double* partial) {
  __shared__ double sums[2][kChunkThreads / 32];
  for (int half = 16; half > 0; half /= 2) {
    values += __shfl_down_sync(0xffffffffu, values, half);
    updates += __shfl_down_sync(0xffffffffu, updates, half);
  }
  if (threadIdx.x % 32 == 0) {
    sums[0][threadIdx.x / 32] = values;
    sums[1][threadIdx.x / 32] = updates;
  }
  __syncthreads();
  if (threadIdx.x >= 2) return;
  double sum = 0;
  for (int warp = 0; warp < kChunkThreads / 32; ++warp) sum += sums[threadIdx.x][warp];
  partial[2 * static_cast<int64_t>(blockIdx.x) + threadIdx.x] = sum;
}

// Computes scale |p| / (|u| + decay |p|) of each range, a block for each; 1 for what is spared, and
// where one of the two norms is 0.
static __global__ void __launch_bounds__(kChunkThreads)
    Ratios(const ChunkTable chunks, const double* __restrict__ partial, double scale, double decay,
           double* __restrict__ ratios) {
  __shared__ double sums[2][kChunkThreads];
  double values = 0, updates = 0;
  for (int chunk = chunks.firsts[blockIdx.x] + static_cast<int>(threadIdx.x);
       chunk < chunks.firsts[blockIdx.x + 1]; chunk += kChunkThreads) {
    values += partial[2 * chunk];
    updates += partial[2 * chunk + 1];
  }
  sums[0][threadIdx.x] = values;
  sums[1][threadIdx.x] = updates;
  for (int half = kChunkThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      sums[0][threadIdx.x] += sums[0][threadIdx.x + half];
      sums[1][threadIdx.x] += sums[1][threadIdx.x + half];
    }
  }
  if (threadIdx.x != 0) return;
  const double value = sqrt(sums[0][0]), update = sqrt(sums[1][0]);
  const bool is_scaled = chunks.decays[blockIdx.x] != 0 && value > 0 && update > 0;
  ratios[blockIdx.x] = is_scaled ? scale * value / (update + decay * value) : 1;
}

// Returns no more than the type can hold: infinity times an element of 0 is none.
__device__ inline float Finite(double value) {
  return static_cast<float>(fmin(value, 3.4028234663852886e38));
}

}  // namespace tutti::device
