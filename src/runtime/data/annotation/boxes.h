// Parses boxes around objects as data sets keep them, and places them into a batch. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/augment/geometry.h"
#include "runtime/data/image.h"

namespace tutti::data {

struct Box {
  int32_t label = 0;
  float left = 0, top = 0, right = 0, bottom = 0;  // in parts of the image's sides
  bool operator==(const Box&) const = default;
};

// Reads a line an object, as YOLO's sets have them: its class from 0, then its centre's x and y,
// its width and its height in parts of the image's. Empty lines count for nothing; an empty text is
// a image without objects. InvalidArgument names the line: not five numbers, a class that is none
// of `classes`, no area, more than a thousandth outside of the image, or more than 1000 objects.
absl::StatusOr<std::vector<Box>> ParseBoxes(absl::string_view text, int64_t classes);

// Computes what the image's `geometry` makes of a box, in parts of the output and cut at its edge.
// False: the centre is not in the output.
bool PlaceBox(const Box& box, const Geometry& geometry, ImageSize output, Box& placed);

}  // namespace tutti::data
