// Loads one image by itself, as a model sees it at evaluation, for scoring.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/data/loader.h"

namespace tutti::data {

// Decodes, resizes and normalises a JPEG into `pixels`: height * width * 3 values, channels-last
// ([1, 3, H, W] with strides {H*W*3, 1, W*3, 3}). The random parts of `augmentation` are left out.
// An image of another size than the model's is resized (shorter side to `resize`, or to the longer
// side of the input if that is 0) and cropped at its centre. Errors are those of the decoder.
absl::Status LoadImage(absl::string_view encoded, Augmentation augmentation, PixelType type,
                       void* pixels);

}  // namespace tutti::data
