#include "runtime/tasks/segmentation.h"

#include <algorithm>
#include <functional>

namespace tutti::tasks {
namespace {

using torch::Tensor;

constexpr double kAuxiliaryHead = 0.5;

Tensor PixelLoss(const Tensor& logits, const Tensor& masks) {
  return at::cross_entropy_loss(logits, masks, {}, at::Reduction::Sum, Segmentation::kIgnored);
}

// `sums` are the confusion matrix (row: what is, column: what was said), then the loss.
class Confusion final : public Measure {
 public:
  explicit Confusion(int64_t classes) : classes_(classes) {
    sums.resize(static_cast<size_t>(classes * classes + 1));
  }
  void Add(const Tensor& logits, const Tensor& masks) override {
    const Tensor known = masks.ne(Segmentation::kIgnored);
    const Tensor pairs = (masks * classes_ + logits.argmax(1)).masked_select(known);
    const Tensor counts = pairs.bincount({}, classes_ * classes_).to(torch::kFloat64);
    const double* const count = counts.const_data_ptr<double>();
    std::transform(count, count + counts.numel(), sums.begin(), sums.begin(), std::plus<>());
    sums.back() += PixelLoss(logits, masks).item<double>();
  }
  std::vector<Metric> Metrics() const override {
    const Tensor matrix = Matrix(), hits = matrix.diagonal();
    const Tensor either = matrix.sum(0) + matrix.sum(1) - hits;
    const Tensor there = either.gt(0);
    const Tensor shares = (hits / either).masked_select(there);
    return {{"miou", "mean IoU", shares.mean().item<double>()},
            {"pixels", "pixels", (hits.sum() / matrix.sum()).item<double>()}};
  }
  double MeanLoss() const override { return sums.back() / Matrix().sum().item<double>(); }

 private:
  Tensor Matrix() const {
    return torch::tensor(at::ArrayRef<double>(sums).slice(0, sums.size() - 1), torch::kFloat64)
        .view({classes_, classes_});
  }
  const int64_t classes_;
};

}  // namespace

int64_t Segmentation::Units(const Tensor& targets) const {
  return targets.ne(kIgnored).sum().item<int64_t>();
}

Loss Segmentation::LossOf(const std::vector<Tensor>& outputs, const Tensor& targets) const {
  Tensor sum = PixelLoss(outputs[0], targets);
  for (size_t i = 1; i < outputs.size(); ++i) {
    sum = sum + kAuxiliaryHead * PixelLoss(outputs[i], targets);
  }
  return {sum, Tensor()};
}

std::unique_ptr<Measure> Segmentation::NewMeasure() const {
  return std::make_unique<Confusion>(classes_);
}

}  // namespace tutti::tasks
