// Resampler resizes, colours, flips, normalises and lays out in one pass over an image's planes.
// The resize is bilinear with antialiasing (augment/taps.h says what it equals).
//
// Everything is fp32 without rounding in between, and the same on every machine. For pixels that
// are red, green and blue the result equals torch's on a float image to about 1e-5 of the range;
// PIL and torchvision on 8-bit images round once or twice, which differs by one level (1/255) at
// most.
//
// A JPEG's planes are averaged first and become red, green and blue then: the same sums in another
// order, save that a decoder rounds each pixel of the image to 8 bits and cuts it off at 0 and
// 255, and here the resized pixel is cut off. resample_test.cc bounds the difference.
#pragma once

#include <cstddef>
#include <vector>

#include "base/machine/instruction_set.h"
#include "runtime/data/augment/geometry.h"
#include "runtime/data/augment/normalize.h"
#include "runtime/data/augment/resample_kernel.h"
#include "runtime/data/augment/taps.h"
#include "runtime/data/image.h"

namespace tutti::data {

// Owns the scratch memory of a resize, which it keeps. Not thread-safe: one for each thread.
class Resampler {
 public:
  // The processor must have `set`; the result has the same bits with each.
  explicit Resampler(base::InstructionSet set = base::UsableInstructionSet());
  // Prepares the taps for an image of `source` pixels; the axes are in its pixels.
  void Prepare(const Axis& x, const Axis& y, ImageSize source);
  // Returns the pixels that Run will look at.
  Region needed() const;
  // `source` holds the samples that make needed(). Writes y.count rows of x.count pixels, mirrored
  // if `flip`, in the normalizer's type and layout.
  void Run(const Planes& source, bool flip, const Normalizer& normalizer, void* out);

 private:
  int16_t* Scratch(size_t values);

  void (*const resize_a_band_)(const ResizeBand&);
  AxisTaps x_, y_;                          // in pixels
  AxisTaps x_of_plane_[3], y_of_plane_[3];  // in a plane's samples, where it has fewer
  PairTaps x_pairs_[3], y_pairs_[3];
  std::vector<std::byte> scratch_;
};

}  // namespace tutti::data
