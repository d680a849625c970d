#include "runtime/data/augment/resample.h"

#include <algorithm>
#include <memory>

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

Resampler::Resampler(base::InstructionSet set) : resize_a_band_(kResizeABand.For(set)) {}

void Resampler::Prepare(const Axis& x, const Axis& y, ImageSize source) {
  x_.Compute(x, source.width);
  y_.Compute(y, source.height);
}

Region Resampler::needed() const {
  return {x_.begin, y_.begin, x_.end - x_.begin, y_.end - y_.begin};
}

int16_t* Resampler::Scratch(size_t values) {
  constexpr size_t kAlignment = 64;
  const size_t bytes = values * sizeof(int16_t);
  if (scratch_.size() < bytes + kAlignment) scratch_.resize(bytes + kAlignment);
  void* aligned = scratch_.data();
  size_t space = scratch_.size();
  return static_cast<int16_t*>(std::align(kAlignment, bytes, aligned, space));
}

void Resampler::Run(const Planes& source, bool flip, const Normalizer& normalizer, void* out) {
  ResizeBand band;
  band.colors = source.colors;
  band.width = static_cast<int>(x_.size());
  band.flip = flip;
  const PairTaps* down[3] = {};
  size_t widest = 0;
  for (int c = 0; c < source.count(); ++c) {
    const Plane& plane = source.plane[c];
    BandPlane& to = band.plane[c];
    if (c == 2 && SameGrid(plane, source.plane[1])) {
      to = band.plane[1];
      down[2] = down[1];
    } else {
      const AxisTaps* x = TapsOfPlane(x_, plane.across, plane.whole.width, x_of_plane_[c]);
      const AxisTaps* y = TapsOfPlane(y_, plane.down, plane.whole.height, y_of_plane_[c]);
      x_pairs_[c].Compute(*x, true);
      y_pairs_[c].Compute(*y, false);
      down[c] = &y_pairs_[c];
      to.x_first = x_pairs_[c].first.data();
      to.x_weights = x_pairs_[c].weights.data();
      to.x_pairs = x_pairs_[c].count;
      to.y_pairs = y_pairs_[c].count;
      to.y_taps = y->count;
      to.begin = x->begin;
      to.count = x->end - x->begin;
    }
    to.stride = plane.stride;
    to.samples = plane.samples;
    to.left = plane.left;
    to.top = plane.top;
    widest = std::max(widest, static_cast<size_t>(to.count));
  }
  band.scratch = Scratch(ScratchValues(widest));
  band.target = normalizer.Target(band.width, static_cast<int>(y_.size()), out);
  const size_t height = y_.size();
  for (size_t y = 0; y < height; y += kBandRows) {
    for (int c = 0; c < source.count(); ++c) {
      band.plane[c].y_first = down[c]->first.data() + y;
      band.plane[c].y_weights = down[c]->weights.data() + y * static_cast<size_t>(down[c]->count);
    }
    band.rows = static_cast<int>(std::min<size_t>(kBandRows, height - y));
    resize_a_band_(band);
    band.target.out += kBandRows * band.target.row_bytes;
  }
}

}  // namespace tutti::data
