// Declares the ways in which convolution_bf16.h computes: by pixels, where the kernel is 1x1, and
// by images with a border; by Winograd's patches; the weights' gradient where there is AMX.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/bf16/convolution_bf16.h"

namespace tutti::device::cpu {

void ForwardOfPixels(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads);
void InputGradientOfPixels(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads);

void ForwardOfImages(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads);
void InputGradientOfImages(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads);

void DirectWeightGradient(const Convolution& c, const uint16_t* x, const uint16_t* dy, uint16_t* dw,
                          int threads);

// Computes 3x3 by a step of 1, over a multiple of 32 channels, by patches of 2x2 results with 16
// products for 36 (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks"). The
// products' operands are sums of values, rounded to bf16.
void WinogradForward(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads);
void WinogradInputGradient(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads);
void WinogradWeightGradient(const Convolution& c, const uint16_t* x, const uint16_t* dy,
                            uint16_t* dw, int threads);

// Computes it with AMX, where HasAmx(), for all but a stem.
void AmxWeightGradient(const Convolution& c, const uint16_t* x, const uint16_t* dy, uint16_t* dw,
                       int threads);

}  // namespace tutti::device::cpu
