#include "runtime/data/annotation/annotation.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "runtime/data/annotation/boxes.h"

namespace tutti::data {
namespace {

constexpr size_t kNumbersOfBox = 5;

size_t BoxNumbers(const Dataset& dataset) {
  return kNumbersOfBox * static_cast<size_t>(dataset.most_boxes());
}

void PlaceBoxes(const std::vector<Box>& boxes, const Geometry& geometry, ImageSize output,
                float* out) {
  for (const Box& box : boxes) {
    Box placed;
    if (!PlaceBox(box, geometry, output, placed)) continue;
    *out++ = static_cast<float>(placed.label);
    for (const float side : {placed.left, placed.top, placed.right, placed.bottom}) *out++ = side;
  }
}

}  // namespace

absl::string_view NameOf(Annotations annotations) {
  switch (annotations) {
    case Annotations::kLabels:
      return "labels";
    case Annotations::kMasks:
      return "masks";
    case Annotations::kBoxes:
      return "boxes";
  }
  return "";
}

size_t AnnotationBytes(const Dataset& dataset, ImageSize output) {
  switch (dataset.annotations()) {
    case Annotations::kMasks:
      return static_cast<size_t>(output.width) * static_cast<size_t>(output.height);
    case Annotations::kBoxes:
      return BoxNumbers(dataset) * sizeof(float);
    case Annotations::kLabels:
      break;
  }
  return 0;
}

absl::StatusOr<MaskView> AnnotationReader::ReadMask(const Dataset& dataset, int64_t sample,
                                                    ImageSize image) {
  TUTTI_ASSIGN_OR_RETURN(const absl::string_view encoded, dataset.Annotation(sample, bytes_));
  TUTTI_ASSIGN_OR_RETURN(const MaskView mask, DecodeMask(encoded, mask_));
  TUTTI_RETURN_IF_ERROR(CheckMask(mask, image, static_cast<int64_t>(dataset.classes().size())));
  return mask;
}

absl::Status AnnotationReader::Read(const Dataset& dataset, int64_t sample,
                                    const Geometry& geometry, ImageSize output, void* out) {
  if (dataset.annotations() == Annotations::kMasks) {
    const absl::StatusOr<MaskView> mask = ReadMask(dataset, sample, geometry.source);
    if (!mask.ok()) return base::Annotate(mask.status(), "its mask");
    PlaceMask(*mask, geometry, output, static_cast<uint8_t*>(out));
  } else if (dataset.annotations() == Annotations::kBoxes) {
    TUTTI_ASSIGN_OR_RETURN(const absl::string_view text, dataset.Annotation(sample, bytes_));
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Box> boxes,
                           ParseBoxes(text, static_cast<int64_t>(dataset.classes().size())));
    if (static_cast<int64_t>(boxes.size()) > dataset.most_boxes()) {
      return absl::DataLossError("its boxes have become more");
    }
    auto* const numbers = static_cast<float*>(out);
    std::fill_n(numbers, BoxNumbers(dataset), -1.0f);
    PlaceBoxes(boxes, geometry, output, numbers);
  }
  return absl::OkStatus();
}

absl::Status AnnotationReader::Count(const Dataset& dataset, int64_t sample, ImageSize image,
                                     std::vector<int64_t>& of_class) {
  if (dataset.annotations() == Annotations::kLabels) {
    ++of_class.at(static_cast<size_t>(dataset.label(sample)));
  } else if (dataset.annotations() == Annotations::kBoxes) {
    TUTTI_ASSIGN_OR_RETURN(const absl::string_view text, dataset.Annotation(sample, bytes_));
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Box> boxes,
                           ParseBoxes(text, static_cast<int64_t>(of_class.size())));
    for (const Box& box : boxes) ++of_class.at(static_cast<size_t>(box.label));
  } else {
    const absl::StatusOr<MaskView> mask = ReadMask(dataset, sample, image);
    if (!mask.ok()) return base::Annotate(mask.status(), "its mask");
    std::array<bool, 256> there = {};
    const size_t pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
    for (size_t i = 0; i < pixels; ++i) there[mask->classes[i]] = true;
    for (size_t c = 0; c < of_class.size() && c < kUnknownClass; ++c) of_class[c] += there[c];
  }
  return absl::OkStatus();
}

}  // namespace tutti::data
