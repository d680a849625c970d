#include "runtime/train/evaluation.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/status.h"

namespace tutti::train {
namespace {

enum Sum { kTop1, kTop5, kLoss, kImages, kSums };

void Add(const torch::Tensor& logits, const torch::Tensor& labels, std::span<double> sums) {
  const int64_t five = std::min<int64_t>(5, logits.size(1));
  const auto best = std::get<1>(logits.topk(five, 1));
  const auto hits = best.eq(labels.unsqueeze(1));
  sums[kTop1] += hits.select(1, 0).sum().item<double>();
  sums[kTop5] += hits.sum().item<double>();
  sums[kLoss] += at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum).item<double>();
  sums[kImages] += static_cast<double>(labels.size(0));
}

}  // namespace

torch::Tensor ImagesOf(const data::Batch& batch, const data::Augmentation& augmentation,
                       bool bf16) {
  // from_blob takes no const; nobody writes to the model's input.
  return torch::from_blob(const_cast<void*>(batch.pixels),
                          {batch.count, augmentation.height, augmentation.width, 3},
                          bf16 ? torch::kBFloat16 : torch::kFloat32)
      .permute({0, 3, 1, 2});
}

torch::Tensor LabelsOf(const data::Batch& batch) {
  return torch::from_blob(const_cast<int64_t*>(batch.labels), {batch.count}, torch::kInt64);
}

absl::StatusOr<Evaluation> Evaluate(parallel::Strategy& strategy, data::Loader& loader,
                                    const data::Augmentation& augmentation, bool bf16,
                                    absl::Duration timeout) {
  std::array<double, kSums> sums = {};
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    TUTTI_ASSIGN_OR_RETURN(const data::Batch batch, loader.Next(base::Deadline::After(timeout)));
    if (batch.count == 0) continue;
    TUTTI_ASSIGN_OR_RETURN(const torch::Tensor logits,
                           strategy.Predict(ImagesOf(batch, augmentation, bf16)));
    Add(logits, LabelsOf(batch), sums);
  }
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(sums, base::Deadline::After(timeout)));
  const double images = sums[kImages];
  return Evaluation{sums[kTop1] / images, sums[kTop5] / images, sums[kLoss] / images,
                    static_cast<int64_t>(images)};
}

}  // namespace tutti::train
