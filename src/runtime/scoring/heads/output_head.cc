#include "runtime/scoring/heads/output_head.h"

#include "absl/strings/str_cat.h"

namespace tutti::scoring {

absl::StatusOr<std::unique_ptr<const Head>> MakeHead(HeadSpec spec) {
  if (spec.task == "classification") return MakeClassificationHead(std::move(spec));
  if (spec.task == "segmentation" && spec.classes.size() > 255) {
    return absl::InvalidArgumentError("a mask has at most 255 classes");
  }
  if (spec.task == "segmentation") return MakeSegmentationHead(std::move(spec));
  if (spec.task == "detection") return MakeDetectionHead(std::move(spec));
  return absl::InvalidArgumentError(absl::StrCat(
      "the task ", spec.task, " is not one of classification, segmentation and detection"));
}

void AppendText(absl::string_view text, std::string& bytes) {
  AppendValue(static_cast<uint32_t>(text.size()), bytes);
  bytes.append(text.data(), text.size());
}

}  // namespace tutti::scoring
