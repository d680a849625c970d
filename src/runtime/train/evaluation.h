// How good the model is on images that it has not seen.
#pragma once

#include <torch/torch.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/data/loader.h"
#include "runtime/parallel/strategy.h"

namespace tutti::train {

struct Evaluation {
  double top1 = 0, top5 = 0;  // share of the images, 0..1
  double loss = 0;            // mean cross-entropy, without label smoothing
  int64_t images = 0;
};

// Views of a batch's memory, valid as long as it is: [count, 3, H, W] channels-last in fp32 or
// bf16, and [count] int64.
torch::Tensor ImagesOf(const data::Batch& batch, const data::Augmentation& augmentation, bool bf16);
torch::Tensor LabelsOf(const data::Batch& batch);

// One epoch of `loader`, of which each rank takes its part; the sums over the ranks are exact.
// `timeout` bounds each wait.
absl::StatusOr<Evaluation> Evaluate(parallel::Strategy& strategy, data::Loader& loader,
                                    const data::Augmentation& augmentation, bool bf16,
                                    absl::Duration timeout);

}  // namespace tutti::train
