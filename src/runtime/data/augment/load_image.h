// ImageLoader loads images by themselves, as a model sees them at evaluation, for scoring.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/augment/normalize.h"
#include "runtime/data/augment/transform.h"
#include "runtime/data/image.h"
#include "runtime/data/loader.h"

namespace tutti::data {

// Keeps its scratch memory from image to image. Not thread-safe: one for each thread.
class ImageLoader {
 public:
  // The random parts of `augmentation` are left out. An image of another size than the model's is
  // resized (shorter side to `resize`, or to the longer side of the input if that is 0) and cropped
  // at its centre. InvalidArgument as Validate.
  static absl::StatusOr<std::unique_ptr<ImageLoader>> Make(Augmentation augmentation,
                                                           PixelType type);

  // Decodes, resizes and normalises an image into `pixels`: height * width * 3 values,
  // channels-last ([1, 3, H, W] with strides {H*W*3, 1, W*3, 3}). Returns the size that the image
  // had. Errors are those of the decoder.
  absl::StatusOr<ImageSize> Load(absl::string_view encoded, void* pixels);

 private:
  ImageLoader(const Augmentation& augmentation, PixelType type)
      : normalizer_(augmentation, type), transform_(augmentation, normalizer_) {}

  const Normalizer normalizer_;
  Transform transform_;
};

}  // namespace tutti::data
