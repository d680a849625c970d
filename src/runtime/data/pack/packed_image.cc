#include "runtime/data/pack/packed_image.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "runtime/data/decode/jpeg/jpeg_encoder.h"
#include "runtime/data/decode/jpeg/jpeg_pieces.h"

namespace tutti::data {
namespace {

// Pixels of 0 to 255: mean 0, and stddev undoes the division.
const Augmentation kLevels{.stddev = {1 / 255.0f, 1 / 255.0f, 1 / 255.0f}};

ImageSize Smaller(ImageSize size, int shorter_side) {
  const int shorter = std::min(size.width, size.height);
  const auto scaled = [&](int side) {
    return static_cast<int>(int64_t{side} * shorter_side / shorter);
  };
  return {scaled(size.width), scaled(size.height)};
}

}  // namespace

ImagePacker::ImagePacker(const PackOptions& options)
    : resize_(options.resize),
      quality_(options.quality),
      fast_crops_(options.fast_crops),
      levels_(kLevels, PixelType::kFloat32) {}

absl::StatusOr<PackedImage> ImagePacker::Pack(absl::string_view encoded) {
  TUTTI_ASSIGN_OR_RETURN(const ImageSize size, decoder_.Open(encoded));
  PackedImage packed{std::string(encoded), EndingOf(decoder_.codec(), encoded), false, size, size};
  if (resize_ > 0 && std::min(size.width, size.height) > resize_) {
    packed.to = Smaller(size, resize_);
    TUTTI_ASSIGN_OR_RETURN(packed.bytes, MakeSmaller(size, packed.to));
    packed.extension = "jpg";
    packed.resized = true;
  }
  if (fast_crops_ && packed.extension == "jpg") {
    absl::StatusOr<std::string> cut = CutIntoPieces(packed.bytes);
    if (cut.ok()) packed.bytes = *std::move(cut);
    if (absl::IsDataLoss(cut.status())) return cut.status();
  }
  return packed;
}

absl::StatusOr<std::string> ImagePacker::MakeSmaller(ImageSize size, ImageSize to) {
  TUTTI_ASSIGN_OR_RETURN(const Planes planes,
                         decoder_.DecodePlanes({0, 0, size.width, size.height}));
  resampler_.Prepare({0, double(size.width), to.width, 0, to.width},
                     {0, double(size.height), to.height, 0, to.height}, size);
  pixels_.resize(static_cast<size_t>(to.width) * static_cast<size_t>(to.height) * 3);
  resampler_.Run(planes, /*flip=*/false, levels_, pixels_.data());
  rgb_.resize(pixels_.size());
  std::transform(pixels_.begin(), pixels_.end(), rgb_.begin(), [](float level) {
    return static_cast<uint8_t>(std::clamp(std::lround(level), 0l, 255l));
  });
  return EncodeRgbAsJpeg(rgb_.data(), to, quality_);
}

}  // namespace tutti::data
