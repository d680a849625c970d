// Decodes Windows' bitmaps (BMP) that are not compressed: of palettes with 1, 4 or 8 bits, of 24
// and of 32 bits a pixel, with the first row at the top or at the bottom.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

// InvalidArgument: another kind of BMP, more than `max_pixels`; DataLoss: damaged.
absl::StatusOr<ImageSize> SizeOfBmp(absl::string_view encoded, int64_t max_pixels);

// Decodes to RGB in `memory`, which the view is of. Errors as above.
absl::StatusOr<ImageView> DecodeBmp(absl::string_view encoded, int64_t max_pixels,
                                    std::vector<uint8_t>& memory);

}  // namespace tutti::data
