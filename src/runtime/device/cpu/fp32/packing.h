// Weights as Kernels::multiply reads them: blocks of results, [block][depth][width].
#pragma once

#include <cstdint>

#include "runtime/device/cpu/fp32/kernels.h"
#include "runtime/device/cpu/fp32/window.h"

namespace tutti::device::cpu::fp32 {

// Results of a tile, of `results` in all (a multiple of 16).
inline int64_t BlockOf(const Kernels& kernels, int64_t results) {
  return results % kernels.block == 0 ? kernels.block : kPanel;
}

// `w` is [outputs, kernel, kernel, inputs] and as long as all weights is `to`. A depth is a
// window's values, in their order. Forward's, where results are outputs:
void PackForward(const Kernels& kernels, const Convolution& c, const float* w, float* to,
                 int threads);
// The input gradient's, where results are inputs, for what `window` sees:
void PackInputGradient(const Kernels& kernels, const Convolution& c, const Window& window,
                       const float* w, float* to, int threads);

}  // namespace tutti::device::cpu::fp32
