// Packs one image for a shard: as it is, or smaller.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/augment/resample.h"
#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/pack/pack_dataset.h"

namespace tutti::data {

struct PackedImage {
  std::string bytes;
  absl::string_view extension;  // "jpg", "png", …
  bool resized = false;
  ImageSize from, to;  // before and after
};

// Keeps its memory from image to image. Not thread-safe.
class ImagePacker {
 public:
  explicit ImagePacker(const PackOptions& options);

  // Returns `encoded` as it is, once its header was read, or smaller, or rewritten (CMYK never is).
  // Errors as ImageDecoder's.
  absl::StatusOr<PackedImage> Pack(absl::string_view encoded);

 private:
  absl::StatusOr<std::string> MakeSmaller(ImageSize size, ImageSize to);

  const int resize_, quality_;
  const bool fast_crops_;
  ImageDecoder decoder_;
  Resampler resampler_;
  Normalizer levels_;
  std::vector<float> pixels_;
  std::vector<uint8_t> rgb_;
};

}  // namespace tutti::data
