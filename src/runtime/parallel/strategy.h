// How one step runs on many ranks. The training loop calls this alone and does not know how many
// ranks there are or how they share the work.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"
#include "runtime/models/model.h"

namespace tutti::parallel {

// Seconds of one step's parts; they add up to the step.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double communication = 0;  // waiting for it after backward has ended: what overlap did not hide
};

struct StepResult {
  double loss = 0;      // this rank's mean over its part of the mini-batch
  int64_t correct = 0;  // of this rank's part, top-1
  int64_t count = 0;
  StepTimes times;
};

// A contiguous run of parameters with their gradients, reduced and updated as one: flat fp32 (or
// bf16 gradients), of which the model's parameters and their .grad are views. See bucket.h.
class Bucket;

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Makes every rank's parameters and buffers equal to rank 0's.
  virtual absl::Status Synchronize(base::Deadline deadline) = 0;
  // Forward, backward and the mean of the gradients over the whole mini-batch. When it returns,
  // every rank's buckets hold the same bits. `images` [n, 3, H, W], `labels` [n].
  virtual absl::StatusOr<StepResult> Step(const torch::Tensor& images, const torch::Tensor& labels,
                                          base::Deadline deadline) = 0;
  virtual const std::vector<std::unique_ptr<Bucket>>& buckets() = 0;
};

}  // namespace tutti::parallel
