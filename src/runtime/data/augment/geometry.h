// Plans where the pixels of one augmented image come from in its source: before decoding, so that
// no more is decoded than is needed. A pure function of the recipe, the source's size and the
// sample's random stream.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/image.h"
#include "runtime/data/loader.h"
#include "runtime/data/sampling/random_stream.h"

namespace tutti::data {

// One direction of a resize: the source interval [begin, begin + extent) is resized to `full`
// pixels, of which [first, first + count) are kept.
struct Axis {
  double begin = 0;
  double extent = 0;
  int full = 0;
  int first = 0;
  int count = 0;
};

struct Geometry {
  ImageSize source;
  // False: pixels are copied, the output's top left pixel being the source's (left, top), which may
  // lie outside of it (black). True: `x` and `y` say how to resize.
  bool resize = false;
  int left = 0;
  int top = 0;
  Axis x, y;
  bool flip = false;  // mirrored left to right, after the resize or copy
  Region erased;      // of the output, after all else; empty: nothing is
};

// Checks what does not depend on an image. InvalidArgument names the field.
absl::Status Validate(const Augmentation& augmentation);

// Returns whether this recipe copies the pixels of images that have the batch's size, so that
// keeping whole decoded images helps; and whether it copies those of an image of this size.
bool CopiesPixels(const Augmentation& augmentation);
bool CopiesPixelsOf(const Augmentation& augmentation, ImageSize source);

// Plans the geometry; `source` is the size of the whole image. What flips alternately is kNever or
// kAlways by then. Equal to torchvision's transforms, given the same draws: RandomCrop(padding),
// RandomResizedCrop (its ten tries, then the central crop), Resize + CenterCrop,
// RandomHorizontalFlip, RandomErasing. InvalidArgument: the image is of another size than the
// batch, or too small for the crop.
absl::StatusOr<Geometry> PlanGeometry(const Augmentation& augmentation, ImageSize source,
                                      RandomStream random);

}  // namespace tutti::data
