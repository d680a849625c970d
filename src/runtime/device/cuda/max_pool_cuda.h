// Computes max-pooling 3x3 with stride 2 and a padding of 1 over channels-last bf16 activations, as
// in the stem of a residual network. Plain CUDA: no torch here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti::device {

struct Pooling {
  int images, height, width;  // of the input
  int channels;               // a multiple of 8
  int out_height() const { return (height + 1) / 2; }
  int out_width() const { return (width + 1) / 2; }
};

// Writes y and `taken` (a byte for each element of y): which of the nine was the largest, the first
// of equals; a NaN is larger than anything.
cudaError_t MaxPoolForward(const Pooling& shape, const void* x, void* y, uint8_t* taken,
                           cudaStream_t stream);
// Writes every element of dx once, from the windows that it lies in: no atomic additions, the
// same bits every time.
cudaError_t MaxPoolBackward(const Pooling& shape, const void* dy, const uint8_t* taken, void* dx,
                            cudaStream_t stream);

}  // namespace tutti::device
