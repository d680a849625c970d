// Convolutions over channels-last bf16 activations with a kernel of 1x1 or 3x3, a stride of 1 and
// the padding that keeps the size: nearly all there are in a residual network. For processors with
// AVX512-BF16. No torch here.
//
// All three are products of matrices, made of tiles that stay in registers: 14 pixels by 32
// channels in forward and for the input's gradient, 8 by 32 channels for the weights'. Operands are
// laid out beforehand so that an instruction finds the two neighbours that it multiplies and adds
// in one word: weights by pairs of input channels, activations for the weights' gradient by pairs
// of pixels. A 3x3 kernel is nine such products, shifted over an image with a border of zeros.
//
// Products are summed in fp32, in an order that depends on the shape and the number of threads
// alone. Thread-safe; `threads` threads of OpenMP, libtorch's own pool, share the work.
#pragma once

#include <cstdint>

namespace tutti::device::cpu {

struct Convolution {
  int64_t images, height, width;
  int64_t inputs, outputs;  // channels, multiples of 32
  int64_t kernel;           // 1 or 3
};

// Whether this processor and the functions below can.
bool Takes(const Convolution& shape);

// x [images, height, width, inputs], w [outputs, kernel, kernel, inputs],
// y [images, height, width, outputs].
void ConvolutionForward(const Convolution& shape, const uint16_t* x, const uint16_t* w, uint16_t* y,
                        int threads);
void ConvolutionInputGradient(const Convolution& shape, const uint16_t* dy, const uint16_t* w,
                              uint16_t* dx, int threads);
void ConvolutionWeightGradient(const Convolution& shape, const uint16_t* x, const uint16_t* dy,
                               uint16_t* dw, int threads);

}  // namespace tutti::device::cpu
