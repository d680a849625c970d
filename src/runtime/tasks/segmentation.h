// Segmentation is the task of one class a pixel: cross-entropy over the pixels, mean intersection
// over union.
#pragma once

#include "runtime/tasks/task.h"

namespace tutti::tasks {

// Annotations and targets are masks, [n, H, W] int64, kIgnored where nobody knows. An auxiliary
// head's loss counts a half, as in torchvision's reference. The units are the pixels that are not
// ignored.
class Segmentation final : public Task {
 public:
  static constexpr int64_t kIgnored = 255;

  explicit Segmentation(int64_t classes) : classes_(classes) {}
  absl::string_view name() const override { return "segmentation"; }
  int64_t Units(const torch::Tensor& targets) const override;
  Loss LossOf(const std::vector<torch::Tensor>& outputs,
              const torch::Tensor& targets) const override;
  // Makes a measure of two: miou: over the classes that are there in masks or outputs, the mean of
  // the share of their pixels that both give them; pixels: the share of pixels that are right.
  std::unique_ptr<Measure> NewMeasure() const override;

 private:
  int64_t classes_;
};

}  // namespace tutti::tasks
