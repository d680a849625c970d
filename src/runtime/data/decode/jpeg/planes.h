// Splits packed pixels into planes, for who resizes.
#pragma once

#include <vector>

#include "runtime/data/image.h"

namespace tutti::data {

// Splits `view`, whose first pixel is (left, top) of an image of size `whole`, into three planes
// in `memory`, which they view.
Planes SplitIntoPlanes(const ImageView& view, int left, int top, ImageSize whole,
                       std::vector<uint8_t>& memory);

}  // namespace tutti::data
