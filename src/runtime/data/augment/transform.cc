#include "runtime/data/augment/transform.h"

#include <algorithm>

#include "base/status.h"

namespace tutti::data {
namespace {

Axis Scaled(Axis axis, int denominator) {
  axis.begin /= denominator;
  axis.extent /= denominator;
  return axis;
}

// The smallest decode that still has at least as many pixels as the output, so that the resize only
// ever makes it smaller.
int ChooseDenominator(const Geometry& geometry, int most) {
  for (const int denominator : {8, 4, 2}) {
    if (denominator <= most && geometry.x.extent >= double(denominator) * geometry.x.full &&
        geometry.y.extent >= double(denominator) * geometry.y.full) {
      return denominator;
    }
  }
  return 1;
}

// `scaled` in pixels of the full image, cut at its edge.
Region Unscaled(const Region& scaled, int denominator, ImageSize full) {
  const int left = scaled.left * denominator, top = scaled.top * denominator;
  return {left, top, std::min(scaled.width * denominator, full.width - left),
          std::min(scaled.height * denominator, full.height - top)};
}

}  // namespace

absl::StatusOr<bool> Transform::CopiesPixelsOf(absl::string_view encoded) {
  if (!CopiesPixels(augmentation_) || !augmentation_.fit) return CopiesPixels(augmentation_);
  TUTTI_ASSIGN_OR_RETURN(const ImageSize source, decoder_.Open(encoded));
  return data::CopiesPixelsOf(augmentation_, source);
}

absl::StatusOr<ImageView> Transform::DecodeWhole(absl::string_view encoded) {
  TUTTI_RETURN_IF_ERROR(decoder_.Open(encoded).status());
  return decoder_.Decode();
}

absl::StatusOr<Geometry> Transform::ApplyToPixels(const ImageView& image,
                                                  const RandomStream& random, void* out) {
  TUTTI_ASSIGN_OR_RETURN(const Geometry geometry,
                         PlanGeometry(augmentation_, {image.width, image.height}, random));
  normalizer_.CopyWindow(image, geometry.left, geometry.top,
                         {augmentation_.width, augmentation_.height}, geometry.flip, out);
  normalizer_.Erase({augmentation_.width, augmentation_.height}, geometry.erased, out);
  return geometry;
}

absl::StatusOr<Geometry> Transform::Apply(absl::string_view encoded, const RandomStream& random,
                                          void* out) {
  TUTTI_ASSIGN_OR_RETURN(const bool copies, CopiesPixelsOf(encoded));
  if (copies) {
    TUTTI_ASSIGN_OR_RETURN(const ImageView image, DecodeWhole(encoded));
    return ApplyToPixels(image, random, out);
  }
  TUTTI_ASSIGN_OR_RETURN(const ImageSize source, decoder_.Open(encoded));
  TUTTI_ASSIGN_OR_RETURN(const Geometry geometry, PlanGeometry(augmentation_, source, random));
  TUTTI_RETURN_IF_ERROR(Resize(geometry, source, out));
  return geometry;
}

absl::Status Transform::Resize(const Geometry& geometry, ImageSize source, void* out) {
  const int denominator = ChooseDenominator(geometry, decoder_.max_denominator());
  const ImageSize scaled{(source.width + denominator - 1) / denominator,
                         (source.height + denominator - 1) / denominator};
  resampler_.Prepare(Scaled(geometry.x, denominator), Scaled(geometry.y, denominator), scaled);
  TUTTI_ASSIGN_OR_RETURN(
      const Planes planes,
      decoder_.DecodePlanes(Unscaled(resampler_.needed(), denominator, source), denominator));
  resampler_.Run(planes, geometry.flip, normalizer_, out);
  normalizer_.Erase({augmentation_.width, augmentation_.height}, geometry.erased, out);
  return absl::OkStatus();
}

}  // namespace tutti::data
