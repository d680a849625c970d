#include "runtime/data/augment/resample.h"

#include <algorithm>
#include <memory>

#include "runtime/data/augment/resample_kernel.h"

namespace tutti::data {
namespace {

bool SameGrid(const Plane& a, const Plane& b) {
  return a.across == b.across && a.down == b.down && a.whole == b.whole;
}

const AxisTaps* TapsOfPlane(const AxisTaps& pixels, int ratio, int limit, AxisTaps& own) {
  if (ratio == 1) return &pixels;
  own.ComputeOfPlane(pixels, ratio, limit);
  return &own;
}

}  // namespace

void Resampler::Prepare(const Axis& x, const Axis& y, ImageSize source) {
  x_.Compute(x, source.width);
  y_.Compute(y, source.height);
}

Region Resampler::needed() const {
  return {x_.begin, y_.begin, x_.end - x_.begin, y_.end - y_.begin};
}

float* Resampler::Scratch(size_t floats) {
  constexpr size_t kAlignment = 64;
  const size_t bytes = floats * sizeof(float);
  if (scratch_.size() < bytes + kAlignment) scratch_.resize(bytes + kAlignment);
  void* aligned = scratch_.data();
  size_t space = scratch_.size();
  return static_cast<float*>(std::align(kAlignment, bytes, aligned, space));
}

void Resampler::Run(const Planes& source, bool flip, const Normalizer& normalizer, void* out) {
  ResizeBand band;
  band.colors = source.colors;
  band.width = static_cast<int>(x_.size());
  band.flip = flip;
  const AxisTaps* down[3] = {};
  size_t widest = 0;
  for (int c = 0; c < source.count(); ++c) {
    const Plane& plane = source.plane[c];
    BandPlane& to = band.plane[c];
    if (c == 2 && SameGrid(plane, source.plane[1])) {
      to = band.plane[1];
      down[2] = down[1];
    } else {
      const AxisTaps* x = TapsOfPlane(x_, plane.across, plane.whole.width, x_of_plane_[c]);
      down[c] = TapsOfPlane(y_, plane.down, plane.whole.height, y_of_plane_[c]);
      to.x_first = x->first.data();
      to.x_weights = x->weights.data();
      to.x_taps = x->count;
      to.y_taps = down[c]->count;
      to.begin = x->begin;
      to.count = x->end - x->begin;
    }
    to.stride = plane.stride;
    to.samples = plane.samples;
    to.left = plane.left;
    to.top = plane.top;
    widest = std::max(widest, static_cast<size_t>(to.count));
  }
  band.scratch = Scratch(ScratchFloats(widest));
  band.target = normalizer.Target(band.width, static_cast<int>(y_.size()), out);
  const size_t height = y_.size();
  for (size_t y = 0; y < height; y += kBandRows) {
    for (int c = 0; c < source.count(); ++c) {
      band.plane[c].y_first = down[c]->first.data() + y;
      band.plane[c].y_weights = down[c]->weights.data() + y * static_cast<size_t>(down[c]->count);
    }
    band.rows = static_cast<int>(std::min<size_t>(kBandRows, height - y));
    ResizeABand(band);
    band.target.out += kBandRows * band.target.row_bytes;
  }
}

}  // namespace tutti::data
