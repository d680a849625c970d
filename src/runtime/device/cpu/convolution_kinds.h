// The two ways of convolution.h: by pixels, where the kernel is 1x1, and by images with a border.
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

}  // namespace tutti::device::cpu
