// Packs weights as Kernels::multiply reads them: blocks of results, [block][depth][width].
#pragma once

#include <cstdint>

#include "runtime/device/cpu/fp32/kernels.h"
#include "runtime/device/cpu/fp32/window.h"

namespace tutti::device::cpu::fp32 {

// Returns the results of a tile, of `results` in all (a multiple of 16).
inline int64_t BlockOf(const Kernels& kernels, int64_t results) {
  return results % kernels.block == 0 ? kernels.block : kPanel;
}

// Weights of a block that the first cache holds while all rows go over them.
constexpr int64_t kWeightFloats = 4 << 10;

// Goes through a product by pieces of its depth, and in each by blocks: `body`(block, piece's first
// value, its depth, where its weights begin).
template <typename Body>
void EachPiece(int64_t depth, int64_t results, int64_t width, const Body& body) {
  const int64_t pieces = (depth * width + kWeightFloats - 1) / kWeightFloats;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t begin = depth * piece / pieces, end = depth * (piece + 1) / pieces;
    for (int64_t block = 0; block < results / width; ++block) {
      body(block, begin, end - begin, (block * depth + begin) * width);
    }
  }
}

// The forms of kept weights (bf16/kept_weights.h).
enum WeightForm { kWindows, kPatches };

// `w` is [outputs, kernel, kernel, inputs] and as long as all weights is `to`. A depth is a
// window's values, in their order. Forward's, where results are outputs:
void PackForward(const Kernels& kernels, const Convolution& c, const float* w, float* to,
                 int threads);
// Packs the input gradient's, where results are inputs, for what `window` sees:
void PackInputGradient(const Kernels& kernels, const Convolution& c, const Window& window,
                       const float* w, float* to, int threads);

}  // namespace tutti::device::cpu::fp32
