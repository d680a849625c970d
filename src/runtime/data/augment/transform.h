// Transform turns an encoded image into its place in a batch: it decodes what the geometry needs,
// resizes or crops, flips, normalises, erases.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/data/augment/geometry.h"
#include "runtime/data/augment/normalize.h"
#include "runtime/data/augment/resample.h"
#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/loader.h"
#include "runtime/data/sampling/random_stream.h"

namespace tutti::data {

// Keeps its scratch memory from image to image. Not thread-safe: one for each thread.
class Transform {
 public:
  // `normalizer` must outlive it; `augmentation` has passed Validate.
  Transform(const Augmentation& augmentation, const Normalizer& normalizer)
      : augmentation_(augmentation), normalizer_(normalizer) {}

  // Sets the probability from now on, in the place of the augmentation's.
  void set_erase(double probability) { augmentation_.erase = probability; }
  void set_flip(Flip flip) { augmentation_.flip = flip; }

  // `out` takes height * width * 3 values in the normalizer's type and layout. Gives the way that
  // the image took there.
  absl::StatusOr<Geometry> Apply(absl::string_view encoded, const RandomStream& random, void* out);

  // Returns whether Apply copies this image's pixels; reads no more than its header.
  absl::StatusOr<bool> CopiesPixelsOf(absl::string_view encoded);

  // Do the two halves of Apply for an image whose pixels it copies: a decoded image may be kept and
  // used again.
  absl::StatusOr<ImageView> DecodeWhole(absl::string_view encoded);
  absl::StatusOr<Geometry> ApplyToPixels(const ImageView& image, const RandomStream& random,
                                         void* out);

 private:
  absl::Status Resize(const Geometry& geometry, ImageSize source, void* out);

  Augmentation augmentation_;
  const Normalizer& normalizer_;
  ImageDecoder decoder_;
  Resampler resampler_;
};

}  // namespace tutti::data
