// Detection is the task of boxes around objects, each of a class: SSD's matching and loss (Liu et
// al. 2016, section 2.2), mean average precision as COCO defines it.
#pragma once

#include "runtime/tasks/task.h"

namespace tutti::tasks {

// Annotations: [n, most, 5] fp32, of each object its class and left, top, right, bottom in parts of
// the image; the class is -1 where there are fewer objects. Targets: [n, A, 5] fp32, of each
// default box its class (0: background) and how it moves. The units are the default boxes that have
// an object.
class Detection final : public Task {
 public:
  // `default_boxes` [A, 4], centred (models/networks/single_shot_detector.h).
  Detection(int64_t classes, torch::Tensor default_boxes)
      : classes_(classes), default_boxes_(std::move(default_boxes)) {}
  absl::string_view name() const override { return "detection"; }
  torch::Tensor Targets(const torch::Tensor& annotations) const override;
  int64_t Units(const torch::Tensor& targets) const override;
  // Returns the loss: for boxes with an object, the smooth L1 distance of their moves and the
  // cross-entropy of their class; and the cross-entropy alone of three times as many other boxes of
  // an image, those with the largest one.
  Loss LossOf(const std::vector<torch::Tensor>& outputs,
              const torch::Tensor& targets) const override;
  // Measures map50 (overlap of at least 0.5) and map (mean over 0.5, 0.55, ..., 0.95).
  std::unique_ptr<Measure> NewMeasure() const override;
  // Returns for each default box left, top, right and bottom in parts of the image's sides, then
  // the probabilities of background and classes: [n, A, 4 + 1 + classes].
  torch::Tensor Answer(const torch::Tensor& output) const override;

 private:
  int64_t classes_;
  torch::Tensor default_boxes_;
};

struct Detections {
  torch::Tensor boxes;    // [n, 4] corners
  torch::Tensor classes;  // [n] int64, from 0
  torch::Tensor scores;   // [n], descending
};

// Returns what Detection::Answer says of one image, [A, 4 + 1 + classes], without what is less
// likely than 1 in 100 or repeats a likelier box of its class (Liu et al. 2016, section 2.2); 200
// boxes at most.
Detections Detect(const torch::Tensor& answer);

}  // namespace tutti::tasks
