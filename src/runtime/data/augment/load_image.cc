#include "runtime/data/augment/load_image.h"

#include "base/status.h"
#include "runtime/data/augment/transform.h"

namespace tutti::data {

absl::Status LoadImage(absl::string_view encoded, Augmentation augmentation, PixelType type,
                       void* pixels) {
  augmentation.pad_crop = 0;
  augmentation.random_resized_crop = false;
  augmentation.flip = Flip::kNever;
  augmentation.erase = 0;
  augmentation.fit = true;
  TUTTI_RETURN_IF_ERROR(Validate(augmentation));
  const Normalizer normalizer(augmentation, type);
  Transform transform(augmentation, normalizer);
  const RandomStream unused(0, RandomStream::Purpose::kAugmentation, 0, 0);
  return transform.Apply(encoded, unused, pixels).status();
}

}  // namespace tutti::data
