#include "runtime/train/evaluation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

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

// Adds up what the ranks measured.
absl::Status Share(parallel::Strategy& strategy, tasks::Measure& measure, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(measure.sums, deadline));
  return measure.has_rows() ? Join(strategy, measure.rows, deadline) : absl::OkStatus();
}

void AppendMirrored(const tasks::Measure& measure, std::vector<tasks::Metric>& metrics) {
  for (const tasks::Metric& metric : measure.Metrics()) {
    metrics.push_back({absl::StrCat(metric.name, "_mirrored"),
                       absl::StrCat(metric.title, " with mirror images"), metric.value});
  }
}

// Of images [n, 3, H, W], where this rank has them.
std::vector<torch::Tensor> Mirrored(const std::vector<torch::Tensor>& inputs) {
  std::vector<torch::Tensor> mirrored;
  for (const torch::Tensor& images : inputs) mirrored.push_back(images.flip(3));
  return mirrored;
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const tasks::Task& task, parallel::Strategy& strategy,
                                    Source& source, const EvaluationOptions& options) {
  const std::unique_ptr<tasks::Measure> measure = task.NewMeasure(), mirrored = task.NewMeasure();
  std::vector<double> images = {0};
  const int64_t steps = strategy.layout().trains() ? source.steps_per_epoch() : 0;
  for (int64_t step = 0; step < steps; ++step) {
    TUTTI_ASSIGN_OR_RETURN(const parallel::Batch batch,
                           source.Next(base::Deadline::After(options.timeout)));
    if (batch.targets.size(0) == 0) continue;
    const auto soon = base::Deadline::After(options.timeout);
    TUTTI_ASSIGN_OR_RETURN(const torch::Tensor output, strategy.Predict(batch.inputs, soon));
    torch::Tensor other;
    if (options.mirrored) {
      TUTTI_ASSIGN_OR_RETURN(other, strategy.Predict(Mirrored(batch.inputs), soon));
    }
    if (!strategy.layout().has_outputs()) continue;
    measure->Add(output, batch.targets);
    images[0] += static_cast<double>(batch.targets.size(0));
    if (options.mirrored) mirrored->Add((output + other) / 2, batch.targets);
  }
  // A rank that serves waits here while the others go through all the samples.
  const auto waited_steps = strategy.layout().trains() ? 0 : source.steps_per_epoch();
  const auto deadline =
      base::Deadline::After(options.timeout * static_cast<double>(waited_steps + 1));
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(images, deadline));
  TUTTI_RETURN_IF_ERROR(Share(strategy, *measure, deadline));
  Evaluation evaluation{measure->Metrics(), measure->MeanLoss(), static_cast<int64_t>(images[0])};
  if (options.mirrored) {
    TUTTI_RETURN_IF_ERROR(Share(strategy, *mirrored, deadline));
    AppendMirrored(*mirrored, evaluation.metrics);
  }
  return evaluation;
}

}  // namespace tutti::train
