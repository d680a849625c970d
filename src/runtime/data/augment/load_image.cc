#include "runtime/data/augment/load_image.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/data/augment/transform.h"

namespace tutti::data {

absl::Status LoadImage(absl::string_view encoded, Augmentation augmentation, PixelType type,
                       void* pixels) {
  augmentation.pad_crop = 0;
  augmentation.random_resized_crop = false;
  augmentation.flip = Flip::kNever;
  augmentation.erase = 0;
  if (augmentation.resize == 0 && !augmentation.stretch) {
    ImageDecoder decoder;
    TUTTI_ASSIGN_OR_RETURN(const ImageSize size, decoder.Open(encoded));
    if (size != ImageSize{augmentation.width, augmentation.height}) {
      augmentation.resize = std::max(augmentation.width, augmentation.height);
    }
  }
  TUTTI_RETURN_IF_ERROR(Validate(augmentation));
  const Normalizer normalizer(augmentation, type);
  Transform transform(augmentation, normalizer);
  const RandomStream unused(0, RandomStream::Purpose::kAugmentation, 0, 0);
  return transform.Apply(encoded, unused, pixels).status();
}

absl::StatusOr<ImageSize> SizeOf(const Dataset& dataset, int64_t index) {
  std::string scratch;
  ImageDecoder decoder;
  TUTTI_ASSIGN_OR_RETURN(const absl::string_view encoded, dataset.Encoded(index, scratch));
  return decoder.Open(encoded);
}

}  // namespace tutti::data
