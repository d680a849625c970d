#include "runtime/tasks/detection.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <span>

#include "runtime/tasks/average_precision.h"
#include "runtime/tasks/box_arithmetic.h"

namespace tutti::tasks {
namespace {

using torch::Tensor;

constexpr double kLeastOverlap = 0.5;
constexpr int64_t kNegativesPerPositive = 3;
constexpr double kLeastScore = 0.01, kMostOverlap = 0.45;
constexpr int64_t kMostCandidates = 400, kMostDetections = 200;

Tensor MovesOf(const Tensor& output) { return output.narrow(-1, 0, 4); }
Tensor LogitsOf(const Tensor& output) { return output.narrow(-1, 4, output.size(-1) - 4); }

// [A, 5] of one image's objects [most, 5].
Tensor TargetsOf(const Tensor& objects, const Tensor& defaults) {
  const Tensor there = objects.index({objects.select(1, 0).ge(0)});
  const Tensor match = Match(defaults, there.narrow(1, 1, 4), kLeastOverlap);
  const Tensor matched = match.ge(0).nonzero().squeeze(1);
  const Tensor targets = torch::zeros({defaults.size(0), 5});
  if (matched.numel() == 0) return targets;
  const Tensor objects_of = there.index_select(0, match.index_select(0, matched));
  const Tensor moves = Moves(defaults.index_select(0, matched), objects_of.narrow(1, 1, 4));
  targets.index_put_({matched},
                     torch::cat({objects_of.narrow(1, 0, 1) + 1, moves}, 1));  // 0: background
  return targets;
}

// Which of the boxes without an object count: the hardest of each image. [n, A] bool.
Tensor HardNegatives(const Tensor& losses, const Tensor& positive) {
  const Tensor wanted = kNegativesPerPositive * positive.sum(1, /*keepdim=*/true);
  const Tensor negatives =
      losses.detach().masked_fill(positive, -std::numeric_limits<double>::infinity());
  const Tensor order = std::get<1>(negatives.sort(1, /*descending=*/true));
  const Tensor rank = std::get<1>(order.sort(1));
  return rank.lt(wanted);
}

class Precision final : public Measure {
 public:
  Precision(const Detection& task, int64_t classes) : task_(task), classes_(classes) {
    sums.resize(static_cast<size_t>(classes + 2));
  }
  void Add(const Tensor& output, const Tensor& annotations) override {
    const Tensor targets = task_.Targets(annotations);
    sums[static_cast<size_t>(classes_)] += task_.LossOf({output}, targets).sum.item<double>();
    sums.back() += static_cast<double>(task_.Units(targets));
    const Tensor answers = task_.Answer(output);
    for (int64_t i = 0; i < output.size(0); ++i) AddImage(answers[i], annotations[i]);
  }
  std::vector<Metric> Metrics() const override {
    const std::span<const double> objects(sums.data(), static_cast<size_t>(classes_));
    const auto [at_half, mean] = MeanAveragePrecision(rows, objects);
    return {{"map50", "mAP@0.5", at_half}, {"map", "mAP", mean}};
  }
  double MeanLoss() const override {
    return sums[static_cast<size_t>(classes_)] / std::max(sums.back(), 1.0);
  }
  bool has_rows() const override { return true; }

 private:
  void AddImage(const Tensor& answer, const Tensor& annotations) {
    const Tensor objects = annotations.index({annotations.select(1, 0).ge(0)});
    for (int64_t c = 0; c < classes_; ++c) {
      sums[static_cast<size_t>(c)] += objects.select(1, 0).eq(c).sum().item<double>();
    }
    const Detections found = Detect(answer);
    AppendRows(found, objects, rows);
  }

  const Detection task_;
  const int64_t classes_;
};

}  // namespace

Tensor Detection::Targets(const Tensor& annotations) const {
  std::vector<Tensor> targets(static_cast<size_t>(annotations.size(0)));
  at::parallel_for(0, annotations.size(0), /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      targets[static_cast<size_t>(i)] = TargetsOf(annotations[i], default_boxes_);
    }
  });
  if (targets.empty()) return torch::zeros({0, default_boxes_.size(0), 5});
  return torch::stack(targets);
}

int64_t Detection::Units(const Tensor& targets) const {
  return targets.select(2, 0).gt(0).sum().item<int64_t>();
}

Loss Detection::LossOf(const std::vector<Tensor>& outputs, const Tensor& targets) const {
  const Tensor &output = outputs[0], classes = targets.select(2, 0).to(torch::kInt64);
  const Tensor positive = classes.gt(0);
  const Tensor moves =
      at::smooth_l1_loss(MovesOf(output), targets.narrow(2, 1, 4), at::Reduction::None).sum(2);
  const Tensor scores =
      at::cross_entropy_loss(LogitsOf(output).transpose(1, 2), classes, {}, at::Reduction::None);
  const Tensor counted = positive.logical_or(HardNegatives(scores, positive));
  // Multiplied rather than selected: sizes stay the same from step to step.
  return {(moves * positive).sum() + (scores * counted).sum(), Tensor()};
}

std::unique_ptr<Measure> Detection::NewMeasure() const {
  return std::make_unique<Precision>(*this, classes_);
}

Tensor Detection::Answer(const Tensor& output) const {
  // By another tensor, so that a trace holds no device.
  const Tensor boxes = Moved(default_boxes_.to(output), MovesOf(output)).clamp(0, 1);
  return torch::cat({boxes, torch::softmax(LogitsOf(output), -1)}, -1);
}

Detections Detect(const Tensor& answer) {
  const Tensor boxes = answer.narrow(1, 0, 4);
  const Tensor scores = answer.narrow(1, 4, answer.size(1) - 4);
  std::vector<Tensor> found_boxes, found_classes, found_scores;
  for (int64_t c = 1; c < scores.size(1); ++c) {
    const Tensor likely = scores.select(1, c).gt(kLeastScore).nonzero().squeeze(1);
    const Tensor score = scores.select(1, c).index_select(0, likely);
    const int64_t count = std::min(kMostCandidates, score.numel());
    const auto [best, at] = score.topk(count);
    const Tensor candidates = boxes.index_select(0, likely.index_select(0, at));
    const Tensor kept = Distinct(candidates, kMostOverlap);
    found_boxes.push_back(candidates.index_select(0, kept));
    found_scores.push_back(best.index_select(0, kept));
    found_classes.push_back(torch::full({kept.numel()}, c - 1, torch::kInt64));
  }
  const Tensor all = torch::cat(found_scores);
  const auto [best, order] = all.topk(std::min(kMostDetections, all.numel()));
  return {torch::cat(found_boxes).index_select(0, order),
          torch::cat(found_classes).index_select(0, order), best};
}

}  // namespace tutti::tasks
