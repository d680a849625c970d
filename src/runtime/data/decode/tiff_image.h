// Decodes TIFF to pixels by libtiff, where the build had its headers and the machine has it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

// Reads the size of the first image, turned as the file says. InvalidArgument: more than
// `max_pixels`; DataLoss: damaged; FailedPrecondition: without libtiff.
absl::StatusOr<ImageSize> SizeOfTiff(absl::string_view encoded, int64_t max_pixels);

// Decodes the first image to RGB in `memory`, which the view is of, as Pillow does: of 16 bits the
// upper 8; transparency is left out. Errors as above; InvalidArgument, besides: of a kind that is
// not read (samples of 32 bits, …).
absl::StatusOr<ImageView> DecodeTiff(absl::string_view encoded, int64_t max_pixels,
                                     std::vector<uint8_t>& memory);

}  // namespace tutti::data
