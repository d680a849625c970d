// Declares the innermost loops of the fp32 convolutions: one table of functions per instruction
// set. No torch here. Thread-safe; a function computes on the thread that calls it.
#pragma once

#include <cstdint>

#include "base/machine/instruction_set.h"

namespace tutti::device::cpu::fp32 {

// Channels that lie together where pixels are summed over: a cache line.
constexpr int64_t kPanel = 16;
// Winograd's F(4x4, 3x3): a patch has 6x6 inputs and 4x4 results.
constexpr int64_t kPatchSide = 6, kResultSide = 4;
constexpr int64_t kPlaces = kPatchSide * kPatchSide;

// A product of matrices: rows of `depth` values, `step` apart, by weights [depth][width]; results
// lie `to_step` apart and are added to what is there if `add`.
struct Product {
  int64_t depth, step, to_step, width;
  bool add = false;
};

// The distance from one of a patch's places to the next, and from 16 channels to the next 16, in
// floats.
struct PatchLayout {
  int64_t place, panel;
};

struct Kernels {
  int64_t block;  // results of a tile: 16, or 32 with AVX-512

  // `count` rows from `x`; `width` is `block`, or 16.
  void (*multiply)(const Product& product, int64_t count, const float* x, const float* weights,
                   float* y);
  // sums[row][column] (+)= rows[i][row] * columns[i][column], summed over `count` pixels i, for 16
  // rows, `row_step` apart in `sums`, and `width` columns; panels [i][16], of which the columns'
  // second one begins `second` floats behind the first.
  void (*add_outer)(const float* rows, const float* columns, int64_t second, int64_t count,
                    int64_t width, float* sums, int64_t row_step, bool add);

  // The transforms of Lavin and Gray 2016 (their letters), each for `channels` neighbours, a
  // multiple of 16. B^T d B of 36 pixels, and A dy A^T of 16 pixels of y's gradient:
  void (*transform_input)(const float* const* pixels, int64_t channels, float* to,
                          const PatchLayout& layout);
  void (*transform_gradient)(const float* const* pixels, int64_t channels, float* to,
                             const PatchLayout& layout);
  // A^T m A, to 16 pixels of which those that are null are left out; `m` is [place][channels].
  void (*transform_output)(const float* m, int64_t place, int64_t channels, float* const* pixels);
  // G g G^T of `count` kernels, taps `tap` floats apart, and G^T s G, back.
  void (*transform_kernel)(const float* taps, int64_t tap, int64_t count, float* to, int64_t place);
  void (*transform_kernel_gradient)(const float* from, int64_t place, int64_t count, float* taps,
                                    int64_t tap);
};

// Returns the kernels for AVX-512 or AVX2, whichever this processor has and no variable forbids
// (base/machine/instruction_set.h); null where it has neither.
const Kernels* Best();

// Holds Best() to no more than `most` from now on, in the whole process, for tests. At first that
// is kAvx512, where the processor has it.
void HoldTo(base::InstructionSet most);

}  // namespace tutti::device::cpu::fp32
