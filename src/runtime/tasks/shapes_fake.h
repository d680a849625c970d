// Draws images of squares and discs on noise, for tests that train what tasks are for.
#pragma once

#include <torch/types.h>

namespace tutti::tasks {

struct Shapes {
  torch::Tensor images;  // [n, 3, size, size] fp32, about -2..2, channels-last
  torch::Tensor masks;   // [n, size, size] int64: background, square, disc
  torch::Tensor boxes;   // [n, 3, 5] fp32, as Detection wants them: square, disc
};

// Draws up to three objects an image, some over others; a function of its arguments alone.
Shapes DrawShapes(int64_t count, int64_t size, uint64_t seed);

}  // namespace tutti::tasks
