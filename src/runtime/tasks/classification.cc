#include "runtime/tasks/classification.h"

#include <algorithm>

namespace tutti::tasks {
namespace {

using torch::Tensor;

constexpr double kAuxiliaryClassifier = 0.4;

Tensor CrossEntropy(const Tensor& logits, const Tensor& targets, double smoothing) {
  return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, -100, smoothing);
}

class TopFive final : public Measure {
 public:
  TopFive() { sums.resize(kSums); }
  void Add(const Tensor& logits, const Tensor& labels) override {
    const int64_t five = std::min<int64_t>(5, logits.size(1));
    const auto best = std::get<1>(logits.topk(five, 1));
    const auto hits = best.eq(labels.unsqueeze(1));
    sums[kTop1] += hits.select(1, 0).sum().item<double>();
    sums[kTop5] += hits.sum().item<double>();
    sums[kLoss] += CrossEntropy(logits, labels, 0).item<double>();
    sums[kImages] += static_cast<double>(labels.size(0));
  }
  std::vector<Metric> Metrics() const override {
    return {{"top1", "top-1", sums[kTop1] / sums[kImages]},
            {"top5", "top-5", sums[kTop5] / sums[kImages]}};
  }
  double MeanLoss() const override { return sums[kLoss] / sums[kImages]; }

 private:
  enum { kTop1, kTop5, kLoss, kImages, kSums };
};

}  // namespace

Loss Classification::LossOf(const std::vector<Tensor>& outputs, const Tensor& targets) const {
  Tensor sum = CrossEntropy(outputs[0], targets, label_smoothing_);
  for (size_t i = 1; i < outputs.size(); ++i) {
    sum = sum + kAuxiliaryClassifier * CrossEntropy(outputs[i], targets, label_smoothing_);
  }
  const Tensor labels = targets.dim() == 2 ? targets.argmax(1) : targets;
  return {sum, outputs[0].detach().argmax(1).eq(labels).sum()};
}

std::unique_ptr<Measure> Classification::NewMeasure() const { return std::make_unique<TopFive>(); }

}  // namespace tutti::tasks
