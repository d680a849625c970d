// Decodes PNGs whose levels must stay as they are, as those of masks.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

// Decodes grey levels or palette indices of up to 8 bits, a byte each, whatever the palette, the
// levels' scale or gamma would make of them. InvalidArgument: more than `max_pixels`, another kind
// of PNG; DataLoss: damaged.
absl::StatusOr<ImageSize> DecodePngIndices(absl::string_view encoded, int64_t max_pixels,
                                           std::vector<uint8_t>& memory);

}  // namespace tutti::data
