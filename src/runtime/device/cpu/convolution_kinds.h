// The ways of convolution.h: by pixels, where the kernel is 1x1, and by images with a border; the
// weights' gradient where there is AMX.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/convolution.h"

namespace tutti::device::cpu {

void ForwardOfPixels(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads);
void InputGradientOfPixels(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads);

void ForwardOfImages(const Convolution& c, const uint16_t* x, const uint16_t* w, uint16_t* y,
                     int threads);
void InputGradientOfImages(const Convolution& c, const uint16_t* dy, const uint16_t* w,
                           uint16_t* dx, int threads);

// Not of a stem; where HasAmx().
void AmxWeightGradient(const Convolution& c, const uint16_t* x, const uint16_t* dy, uint16_t* dw,
                       int threads);

}  // namespace tutti::device::cpu
