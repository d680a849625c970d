#include "runtime/data/pack/packed_annotation.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/annotation/boxes.h"
#include "runtime/data/annotation/mask.h"
#include "runtime/data/decode/pnm.h"

namespace tutti::data {

absl::StatusOr<PackedAnnotation> AnnotationPacker::Pack(const Dataset& dataset, int64_t sample,
                                                        ImageSize from, ImageSize to) {
  const auto classes = static_cast<int64_t>(dataset.classes().size());
  TUTTI_ASSIGN_OR_RETURN(const absl::string_view lies, dataset.Annotation(sample, scratch_));
  switch (dataset.annotations()) {
    case Annotations::kMasks:
      return PackMask(lies, classes, from, to);
    case Annotations::kBoxes:  // in parts of the image's sides, whatever these are
      TUTTI_RETURN_IF_ERROR(ParseBoxes(lies, classes).status());
      return PackedAnnotation{std::string(lies), "boxes.txt"};
    case Annotations::kLabels:
      break;
  }
  return PackedAnnotation{absl::StrCat(dataset.label(sample)), "cls"};
}

absl::StatusOr<PackedAnnotation> AnnotationPacker::PackMask(absl::string_view encoded,
                                                            int64_t classes, ImageSize from,
                                                            ImageSize to) {
  TUTTI_ASSIGN_OR_RETURN(const MaskView mask, DecodeMask(encoded, mask_));
  TUTTI_RETURN_IF_ERROR(CheckMask(mask, from, classes));
  if (from == to) {
    const bool png = absl::StartsWith(encoded, "\x89PNG");
    return PackedAnnotation{std::string(encoded), png ? "mask.png" : "mask.pgm"};
  }
  const Geometry geometry{.source = from,
                          .resize = true,
                          .x = {0, double(from.width), to.width, 0, to.width},
                          .y = {0, double(from.height), to.height, 0, to.height}};
  smaller_.resize(static_cast<size_t>(to.width) * static_cast<size_t>(to.height));
  PlaceMask(mask, geometry, to, smaller_.data());
  std::string pgm = PnmHeader(to, 1);
  pgm.append(reinterpret_cast<const char*>(smaller_.data()), smaller_.size());
  return PackedAnnotation{std::move(pgm), "mask.pgm"};
}

}  // namespace tutti::data
