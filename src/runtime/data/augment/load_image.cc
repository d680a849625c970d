#include "runtime/data/augment/load_image.h"

#include "base/status.h"

namespace tutti::data {

absl::StatusOr<std::unique_ptr<ImageLoader>> ImageLoader::Make(Augmentation augmentation,
                                                               PixelType type) {
  augmentation.pad_crop = 0;
  augmentation.random_resized_crop = false;
  augmentation.flip = Flip::kNever;
  augmentation.erase = 0;
  augmentation.fit = true;
  TUTTI_RETURN_IF_ERROR(Validate(augmentation));
  return std::unique_ptr<ImageLoader>(new ImageLoader(augmentation, type));
}

absl::StatusOr<ImageSize> ImageLoader::Load(absl::string_view encoded, void* pixels) {
  const RandomStream unused(0, RandomStream::Purpose::kAugmentation, 0, 0);
  TUTTI_ASSIGN_OR_RETURN(const Geometry geometry, transform_.Apply(encoded, unused, pixels));
  return geometry.source;
}

}  // namespace tutti::data
