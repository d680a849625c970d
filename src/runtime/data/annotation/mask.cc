#include "runtime/data/annotation/mask.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/decode/image_codec.h"
#include "runtime/data/decode/png_image.h"
#include "runtime/data/decode/pnm.h"

namespace tutti::data {
namespace {

// For each of the output's pixels along one direction the source's, or -1 beyond it.
std::vector<int> NearestPixels(const Geometry& geometry, const Axis& axis, int first, int source,
                               int output, bool flip) {
  std::vector<int> nearest(static_cast<size_t>(output));
  for (int i = 0; i < output; ++i) {
    const int at = flip ? output - 1 - i : i;
    const double centre = geometry.resize
                              ? axis.begin + (axis.first + at + 0.5) * axis.extent / axis.full
                              : first + at + 0.5;
    const int pixel = static_cast<int>(std::floor(centre));
    nearest[static_cast<size_t>(i)] = pixel < 0 || pixel >= source ? -1 : pixel;
  }
  return nearest;
}

}  // namespace

absl::StatusOr<MaskView> DecodeMask(absl::string_view encoded, std::vector<uint8_t>& memory) {
  if (absl::StartsWith(encoded, "\x89PNG")) {
    TUTTI_ASSIGN_OR_RETURN(const ImageSize size, DecodePngIndices(encoded, kMaxPixels, memory));
    return MaskView{memory.data(), size};
  }
  if (!absl::StartsWith(encoded, "P5")) {
    return absl::InvalidArgumentError("a mask is a PNG or a PGM: levels must stay as they are");
  }
  TUTTI_ASSIGN_OR_RETURN(const Pnm pnm, ParsePnm(encoded, kMaxPixels));
  memory.assign(pnm.samples.begin(), pnm.samples.end());
  return MaskView{memory.data(), pnm.size};
}

std::string EncodeMask(const MaskView& mask) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = static_cast<png_uint_32>(mask.size.width),
                     .height = static_cast<png_uint_32>(mask.size.height),
                     .format = PNG_FORMAT_GRAY};
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string encoded(bytes, '\0');
  png_image_write_to_memory(&image, encoded.data(), &bytes, 0, mask.classes, 0, nullptr);
  encoded.resize(bytes);
  return encoded;
}

absl::Status CheckMask(const MaskView& mask, ImageSize image, int64_t classes) {
  if (mask.size != image) {
    return absl::InvalidArgumentError(absl::StrCat("the mask is ", mask.size.width, "x",
                                                   mask.size.height, ", its image ", image.width,
                                                   "x", image.height));
  }
  const size_t pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  const uint8_t* const end = mask.classes + pixels;
  const uint8_t* const wrong = std::find_if(
      mask.classes, end, [&](uint8_t level) { return level >= classes && level != kUnknownClass; });
  if (wrong == end) return absl::OkStatus();
  const auto at = static_cast<int64_t>(wrong - mask.classes);
  return absl::OutOfRangeError(absl::StrCat(
      "the mask says ", *wrong, " at pixel (", at % image.width, ", ", at / image.width,
      "), which is out of range: classes.txt names ", classes, " classes"));
}

void PlaceMask(const MaskView& mask, const Geometry& geometry, ImageSize output, uint8_t* out) {
  const std::vector<int> columns = NearestPixels(geometry, geometry.x, geometry.left,
                                                 mask.size.width, output.width, geometry.flip);
  const std::vector<int> rows = NearestPixels(geometry, geometry.y, geometry.top, mask.size.height,
                                              output.height, /*flip=*/false);
  for (const int y : rows) {
    if (y < 0) {
      out = std::fill_n(out, output.width, kUnknownClass);
      continue;
    }
    const uint8_t* const row =
        mask.classes + static_cast<size_t>(y) * static_cast<size_t>(mask.size.width);
    for (const int x : columns) *out++ = x < 0 ? kUnknownClass : row[x];
  }
}

}  // namespace tutti::data
