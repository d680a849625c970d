#include "runtime/data/decode/png_image.h"

#include <png.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::data {
namespace {

// Frees what libpng holds, also after an error.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

absl::StatusOr<ImageSize> Begin(absl::string_view encoded, int64_t max_pixels, PngImage& image) {
  if (png_image_begin_read_from_memory(&image, encoded.data(), encoded.size()) == 0) {
    return absl::DataLossError(absl::StrCat("damaged PNG: ", image.message));
  }
  const int64_t pixels = int64_t{image.width} * image.height;
  if (pixels > max_pixels) {
    return absl::InvalidArgumentError(absl::StrCat("a PNG of ", image.width, "x", image.height,
                                                   " pixels; the most is ", max_pixels));
  }
  return ImageSize{static_cast<int>(image.width), static_cast<int>(image.height)};
}

}  // namespace

absl::StatusOr<ImageSize> SizeOfPng(absl::string_view encoded, int64_t max_pixels) {
  PngImage image;
  return Begin(encoded, max_pixels, image);
}

absl::StatusOr<ImageView> DecodePng(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory) {
  PngImage image;
  TUTTI_ASSIGN_OR_RETURN(const ImageSize size, Begin(encoded, max_pixels, image));
  image.format = PNG_FORMAT_RGBA;
  const size_t bytes = PNG_IMAGE_SIZE(image);
  if (memory.size() < bytes) memory.resize(bytes);
  if (png_image_finish_read(&image, nullptr, memory.data(), 0, nullptr) == 0) {
    return absl::DataLossError(absl::StrCat("damaged PNG: ", image.message));
  }
  return ImageView{memory.data(), size.width, size.height};
}

}  // namespace tutti::data
