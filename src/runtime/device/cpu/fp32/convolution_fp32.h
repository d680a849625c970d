// Computes convolutions over channels-last fp32 activations, for processors with AVX2 or AVX-512:
// those of convolution_bf16.h, by an odd kernel padded by half of it, by steps of 1 or 2, over
// channels that are multiples of 16; of a network's stem, whose input's gradient nobody wants, x
// has 1 to 4.
//
// 3x3 kernels by a step of 1 go by patches, Winograd's F(4x4, 3x3) (Lavin and Gray 2016, "Fast
// Algorithms for Convolutional Neural Networks"), forward and for both gradients: 36 products for
// the 144 of 16 results, summed in fp32, 2e-6 of the result's norm away from the exact one.
// All else is a product of matrices: windows of pixels (window.h), laid out in one piece where they
// are not, by packed weights (packing.h), in tiles that stay in registers (kernels.h).
//
// The order of a sum depends on the shape and the instruction set alone, of the weights' gradient
// on the number of threads too (sharing.h): all else is the same, bit for bit, with any number of
// threads. Thread-safe; `threads` threads of OpenMP, libtorch's own pool, share the work.
#pragma once

#include "runtime/device/cpu/bf16/convolution_bf16.h"

namespace tutti::device::cpu::fp32 {

// Returns whether this processor and the functions below can.
bool CanCompute(const Convolution& shape);
// Says whether 3x3 kernels may go by patches: they may, until this says otherwise
// (train::MakeStrategy does). For the whole process.
void UsePatches(bool use);
// Returns whether this one does, of those that it can.
bool GoesByPatches(const Convolution& shape);

// Computes y; layouts are as in convolution_bf16.h.
void Forward(const Convolution& shape, const float* x, const float* w, float* y, int threads);
// Computes dx; a stem has no such gradient.
void InputGradient(const Convolution& shape, const float* dy, const float* w, float* dx,
                   int threads);
void WeightGradient(const Convolution& shape, const float* x, const float* dy, float* dw,
                    int threads);

// Compute each of these in one way.
void WinogradForward(const Convolution& shape, const float* x, const float* w, float* y,
                     int threads);
void WinogradInputGradient(const Convolution& shape, const float* dy, const float* w, float* dx,
                           int threads);
void WinogradWeightGradient(const Convolution& shape, const float* x, const float* dy, float* dw,
                            int threads);
void DirectWeightGradient(const Convolution& shape, const float* x, const float* dy, float* dw,
                          int threads);

}  // namespace tutti::device::cpu::fp32
