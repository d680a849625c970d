#include "runtime/tasks/task.h"

#include "absl/strings/str_cat.h"
#include "runtime/models/networks/single_shot_detector.h"
#include "runtime/tasks/classification.h"
#include "runtime/tasks/detection.h"
#include "runtime/tasks/segmentation.h"

namespace tutti::tasks {

absl::StatusOr<std::shared_ptr<const Task>> MakeTask(const models::ModelSpec& spec,
                                                     const models::ModelImpl& model,
                                                     const TaskOptions& options) {
  const models::Purpose purpose = models::PurposeOf(spec.name);
  if (purpose == models::Purpose::kClassification) {
    return std::make_shared<Classification>(options.label_smoothing);
  }
  if (options.label_smoothing > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("labels are smoothed in classification alone, and ", spec.name,
                     " is for something else: leave --label-smoothing"));
  }
  if (purpose == models::Purpose::kSegmentation) {
    return std::make_shared<Segmentation>(spec.classes);
  }
  const auto& detector = dynamic_cast<const models::SingleShotDetector&>(model);
  return std::make_shared<Detection>(spec.classes, detector.default_boxes());
}

}  // namespace tutti::tasks
