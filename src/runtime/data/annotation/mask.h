// Decodes masks, which give a class for every pixel of an image, and places them into a batch. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/augment/geometry.h"
#include "runtime/data/image.h"

namespace tutti::data {

inline constexpr uint8_t kUnknownClass = 255;  // of a pixel that counts for nothing

// Rows of bytes; does not own them.
struct MaskView {
  const uint8_t* classes = nullptr;
  ImageSize size;
};

// Reads a PNG of grey levels or of palette indices (1 to 8 bits, as they are: Pascal VOC's colours
// do not matter), or a PGM, into `memory`, which the view is of. InvalidArgument: another kind of
// image, or a larger one than images may be; DataLoss: damaged.
absl::StatusOr<MaskView> DecodeMask(absl::string_view encoded, std::vector<uint8_t>& memory);

// Returns a mask as a PNG of 8-bit grey levels, each a class.
std::string EncodeMask(const MaskView& mask);

// Checks a mask. InvalidArgument: the mask is not as large as its image. OutOfRange: it has a level
// that is neither one of so many classes nor kUnknownClass.
absl::Status CheckMask(const MaskView& mask, ImageSize image, int64_t classes);

// Writes what the image's `geometry` makes of its mask, by the nearest pixel: `out` takes
// output.width * output.height bytes. kUnknownClass beyond the image.
void PlaceMask(const MaskView& mask, const Geometry& geometry, ImageSize output, uint8_t* out);

}  // namespace tutti::data
