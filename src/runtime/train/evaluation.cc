#include "runtime/train/evaluation.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/train/batch_tensors.h"

namespace tutti::train {
namespace {

// Every rank's rows, in the order of the ranks: each adds its own to zeros.
absl::Status Join(parallel::Strategy& strategy, std::vector<double>& rows,
                  base::Deadline deadline) {
  const auto rank = static_cast<size_t>(strategy.rank());
  std::vector<double> sizes(static_cast<size_t>(strategy.world_size()));
  sizes[rank] = static_cast<double>(rows.size());
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(sizes, deadline));
  size_t all = 0, before = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i == rank) before = all;
    all += static_cast<size_t>(sizes[i]);
  }
  std::vector<double> joined(all);
  std::copy(rows.begin(), rows.end(), joined.begin() + static_cast<ptrdiff_t>(before));
  rows = std::move(joined);
  return rows.empty() ? absl::OkStatus() : strategy.SumOverRanks(rows, deadline);
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const tasks::Task& task, parallel::Strategy& strategy,
                                    data::Loader& loader, const data::Augmentation& augmentation,
                                    bool bf16, absl::Duration timeout) {
  const std::unique_ptr<tasks::Measure> measure = task.NewMeasure();
  double images = 0;
  for (int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
    TUTTI_ASSIGN_OR_RETURN(const data::Batch batch, loader.Next(base::Deadline::After(timeout)));
    if (batch.count == 0) continue;
    TUTTI_ASSIGN_OR_RETURN(const torch::Tensor output,
                           strategy.Predict(ImagesOf(batch, augmentation, bf16)));
    measure->Add(output, AnnotationsOf(batch, augmentation));
    images += static_cast<double>(batch.count);
  }
  const auto deadline = base::Deadline::After(timeout);
  measure->sums.push_back(images);
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(measure->sums, deadline));
  images = measure->sums.back();
  measure->sums.pop_back();
  if (measure->has_rows()) TUTTI_RETURN_IF_ERROR(Join(strategy, measure->rows, deadline));
  return Evaluation{measure->Metrics(), measure->MeanLoss(), static_cast<int64_t>(images)};
}

}  // namespace tutti::train
