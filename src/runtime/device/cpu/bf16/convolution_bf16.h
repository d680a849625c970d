// Computes convolutions over channels-last bf16 activations with an odd kernel, padded by half of
// it: all kinds that a residual network has. They are 1x1 and 3x3, by steps of 1 or 2, over a
// multiple of 32 channels, or over 16; and up to 7x7 over an image's few channels (a network's
// stem), but without the input's gradient, which nobody wants there. For processors with
// AVX512-BF16. No torch here.
//
// All three are products of matrices, made of tiles that stay in registers: 14 pixels by 32
// channels in forward and for the input's gradient, and 8 by 32 channels for the weights' gradient;
// in layers of 16 channels, 16 by 16. Operands are laid out beforehand so that an instruction finds
// the two neighbours that it multiplies and adds in one word: weights by pairs of input channels,
// activations for the weights' gradient by pairs of pixels. A 3x3 kernel is nine such products,
// shifted over an image with a border of zeros. In an image with few channels, a row of the kernel
// lies in one piece: it is taken for one pixel with that many channels.
//
// Where there is no AMX, 3x3 by a step of 1 makes results in patches of 2x2 with 16 products for 36
// (Lavin and Gray 2016), from sums of up to four values, and of nine weights, that are rounded to
// bf16: for some 1.7 times the speed the distance from the exact convolution is 4.3e-3 of its norm,
// and not 1.7e-3 (bf16's own rounding of the result). What is not finite spreads over its patch.
//
// Products are summed in fp32, in an order that depends on the shape and the number of threads
// alone. Thread-safe; `threads` threads of OpenMP, libtorch's own pool, share the work.
#pragma once

#include <cstdint>

namespace tutti::device::cpu {

struct Convolution {
  int64_t images, height, width;  // of x
  int64_t inputs, outputs;        // channels
  int64_t kernel, stride = 1;

  int64_t border() const { return kernel / 2; }
  int64_t out_height() const { return (height - 1) / stride + 1; }
  int64_t out_width() const { return (width - 1) / stride + 1; }
  int64_t out_pixels() const { return images * out_height() * out_width(); }
  bool is_stem() const { return inputs <= 4; }
};

// Returns whether the functions below are to compute this one on this processor.
bool Takes(const Convolution& shape);

// Says whether 3x3 kernels may go by patches: not, until this says so (train::MakeStrategy does,
// for tutti's own networks). For the whole process.
void UseWinograd(bool use);
// Returns whether this one does, of those that Takes.
bool GoesByWinograd(const Convolution& shape);

// Computes y of x [images, height, width, inputs] and w [outputs, kernel, kernel, inputs]: y
// [images, out_height, out_width, outputs].
void ConvolutionForward(const Convolution& shape, const uint16_t* x, const uint16_t* w, uint16_t* y,
                        int threads);
// Computes dx; a stem has no such gradient.
void ConvolutionInputGradient(const Convolution& shape, const uint16_t* dy, const uint16_t* w,
                              uint16_t* dx, int threads);
void ConvolutionWeightGradient(const Convolution& shape, const uint16_t* x, const uint16_t* dy,
                               uint16_t* dw, int threads);

}  // namespace tutti::device::cpu
