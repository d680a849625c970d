// Classification is the task of one class an image: cross-entropy, top-1 and top-5.
#pragma once

#include "runtime/tasks/task.h"

namespace tutti::tasks {

// Annotations are labels, [n] int64; targets too, or of mixed images (data/augment/mix.h) each
// one's shares of the classes, [n, classes], of which it is right to find the largest. An auxiliary
// classifier's loss counts 0.4 (Szegedy et al. 2016).
class Classification final : public Task {
 public:
  // Label smoothing: Szegedy et al. 2016, section 7; in training alone.
  explicit Classification(double label_smoothing = 0) : label_smoothing_(label_smoothing) {}
  absl::string_view name() const override { return "classification"; }
  Loss LossOf(const std::vector<torch::Tensor>& outputs,
              const torch::Tensor& targets) const override;
  std::unique_ptr<Measure> NewMeasure() const override;

 private:
  double label_smoothing_;
};

}  // namespace tutti::tasks
