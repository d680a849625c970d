// Reads what a data set says of an image beside its pixels (a label, a mask, boxes), on its way
// into a batch.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/annotation/mask.h"
#include "runtime/data/augment/geometry.h"
#include "runtime/data/dataset.h"

namespace tutti::data {

absl::string_view NameOf(Annotations annotations);  // "labels", "masks", "boxes"

// Returns the bytes of one image's annotation in a batch of images of this size: those of
// Batch::masks or Batch::boxes; 0 for labels.
size_t AnnotationBytes(const Dataset& dataset, ImageSize output);

// Keeps its scratch memory from image to image. Not thread-safe: one for each thread.
class AnnotationReader {
 public:
  // Reads it; `out` takes AnnotationBytes. Errors as those of mask.h and boxes.h.
  absl::Status Read(const Dataset& dataset, int64_t sample, const Geometry& geometry,
                    ImageSize output, void* out);
  // Adds to `of_class` the objects of each class, or 1 for a class that is in the mask, or for the
  // label. `image` is the size that a mask must have.
  absl::Status Count(const Dataset& dataset, int64_t sample, ImageSize image,
                     std::vector<int64_t>& of_class);

 private:
  absl::StatusOr<MaskView> ReadMask(const Dataset& dataset, int64_t sample, ImageSize image);

  std::string bytes_;
  std::vector<uint8_t> mask_;
};

}  // namespace tutti::data
