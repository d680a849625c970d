// Decodes WebP to pixels by libwebp, where the build has it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace tutti::data {

// InvalidArgument: more than `max_pixels`; DataLoss: damaged; FailedPrecondition: built without
// libwebp.
absl::StatusOr<ImageSize> SizeOfWebp(absl::string_view encoded, int64_t max_pixels);

// Decodes to RGB in `memory`, which the view is of; transparency is left out, of an animation the
// first image is taken. Errors as above.
absl::StatusOr<ImageView> DecodeWebp(absl::string_view encoded, int64_t max_pixels,
                                     std::vector<uint8_t>& memory);

}  // namespace tutti::data
