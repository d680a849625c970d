// Encodes pixels as JPEG by libjpeg-turbo, for sets that are packed smaller than they were.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/image.h"

namespace tutti::data {

// Encodes an image: `rgb` holds size.width * size.height * 3 bytes. Colour is kept at half the
// resolution (4:2:0); `quality` is libjpeg's, 1 to 100. InvalidArgument: a side of more than 65500
// pixels.
absl::StatusOr<std::string> EncodeRgbAsJpeg(const uint8_t* rgb, ImageSize size, int quality);

}  // namespace tutti::data
