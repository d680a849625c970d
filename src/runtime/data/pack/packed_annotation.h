// Packs what goes into a shard beside an image: its label, mask or boxes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/dataset.h"
#include "runtime/data/image.h"

namespace tutti::data {

struct PackedAnnotation {
  std::string bytes;
  absl::string_view extension;  // "cls", "mask.png", "mask.pgm" or "boxes.txt"
};

// Keeps its memory from image to image. Not thread-safe.
class AnnotationPacker {
 public:
  // Packs the annotation of an image that was `from` pixels large and is packed as `to`; a mask is
  // made as large. Masks and boxes are read whole: errors are those of mask.h and boxes.h.
  absl::StatusOr<PackedAnnotation> Pack(const Dataset& dataset, int64_t sample, ImageSize from,
                                        ImageSize to);

 private:
  absl::StatusOr<PackedAnnotation> PackMask(absl::string_view encoded, int64_t classes,
                                            ImageSize from, ImageSize to);

  std::string scratch_;
  std::vector<uint8_t> mask_, smaller_;
};

}  // namespace tutti::data
