// Lays images out as blocks of 2 x 2 pixels: what a convolution of stride 2 over three channels
// reads, so that tensor cores take it without padding channels first. Plain CUDA: no torch here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti::device {

// [images, height, width, 3] of bf16 -> [images, out_height, out_width, 16]. Block (i, j) has the
// pixels from row 2 (i - before) and column 2 (j - before) on: channel 6 y + 3 x + c is theirs at
// (y, x), the last four are zero, and so is what lies outside of the image.
struct Blocking {
  int images, height, width;
  int before, out_height, out_width;
};

cudaError_t SpaceToDepth(const Blocking& shape, const void* input, void* blocks,
                         cudaStream_t stream);

}  // namespace tutti::device
