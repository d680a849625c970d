// Bilinear resize with antialiasing, as torch.nn.functional.interpolate(mode="bilinear",
// antialias=True, align_corners=False) and PIL's BILINEAR define it: each output pixel is the mean
// of the source under a triangle whose half-width is max(1, source size / output size) pixels.
//
// The two directions are separate passes in fp32, without rounding in between. So the result equals
// torch's on a float image to about 1e-5 of the range; PIL and torchvision on 8-bit images round
// once or twice, which differs by one level (1/255) at most.
#pragma once

#include <vector>

#include "runtime/data/augment/geometry.h"
#include "runtime/data/augment/normalize.h"
#include "runtime/data/decode/image.h"

namespace tutti::data {

// The source pixels that make one output pixel: `count` of them from `first`, their weights adding
// up to 1 from `weights[offset]` on.
struct Taps {
  int first = 0;
  int count = 0;
  size_t offset = 0;
};

struct AxisTaps {
  std::vector<Taps> taps;  // for each kept output pixel
  std::vector<float> weights;
  // All source pixels that have a weight: [begin, end).
  int begin = 0;
  int end = 0;

  // `limit`: the source has pixels 0 to limit - 1. Keeps its memory from call to call.
  void Compute(const Axis& axis, int limit);
};

// Owns the scratch memory of a resize, which it keeps. Not thread-safe: one for each thread.
class Resampler {
 public:
  // Prepares the taps for a source of this size; the axes are in its pixels.
  void Prepare(const Axis& x, const Axis& y, ImageSize source);
  // What Run will read.
  Region needed() const;
  // `source`'s first pixel is (left, top) of the image that Prepare was told of; it covers
  // needed(). Writes y.count rows of x.count pixels, mirrored if `flip`, through `normalizer`.
  void Run(const ImageView& source, int left, int top, bool flip, const Normalizer& normalizer,
           void* out);

 private:
  void FilterRows(const ImageView& source, int left, int top, const Taps& taps);
  void FilterColumns(bool flip);

  AxisTaps x_, y_;
  std::vector<float>
      line_;  // one output row before the columns are filtered; from source column x_.begin
  std::vector<float> row_;  // one output row
};

}  // namespace tutti::data
