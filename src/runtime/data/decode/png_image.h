// Decodes PNG to pixels by libpng.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

// Reads the size from a PNG's first chunk. InvalidArgument: larger than `max_pixels`; DataLoss:
// damaged.
absl::StatusOr<ImageSize> SizeOfPng(absl::string_view encoded, int64_t max_pixels);

// Decodes to 8-bit RGB in `memory`, which the view is of, as Pillow does: of 16 bits the upper 8,
// whatever gAMA, iCCP or cHRM would make of the levels; transparency is left out. Errors as above.
absl::StatusOr<ImageView> DecodePng(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory);

// Decodes grey levels or palette indices of up to 8 bits, a byte each, whatever the palette, the
// levels' scale or gamma would make of them. InvalidArgument, besides: another kind of PNG.
absl::StatusOr<ImageSize> DecodePngIndices(absl::string_view encoded, int64_t max_pixels,
                                           std::vector<uint8_t>& memory);

}  // namespace tutti::data
