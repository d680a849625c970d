// Strategy is the interface for how one step runs on many ranks. The training loop calls this alone
// and does not know how many ranks there are or how they share the work.
//
// Invariant between two calls: every rank holds the same bits in parameters, gradients and buffers,
// so that any one of them can be evaluated or saved for all.
//
// Every rank makes the same calls in the same order. Thread-compatible, save for RequestStop. After
// an error (which names the rank that caused it) only the destructor may be called.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"
#include "runtime/models/model.h"

namespace tutti::parallel {

// How many seconds each part of a step took; they add up to the step.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double communication = 0;  // waiting for it outside of backward: what overlap did not hide
};

// It tells of the whole mini-batch, over all ranks, and is the same on every rank.
//
// A GPU works on while the CPU prepares what comes next: then the result is that of an earlier step
// or, at first, of none (a count of 0), and Settle gives what is outstanding.
struct StepResult {
  double loss = 0;      // mean over the task's units
  int64_t correct = 0;  // images, where the task counts them
  int64_t count = 0;    // images
  bool stop = false;    // some rank had called RequestStop before this step's backward
  StepTimes times;      // of this rank
};

// A contiguous run of parameters with their gradients, reduced and updated as one: flat memory of
// which the model's parameters and their .grad are views. See bucket.h.
class Bucket;

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // Makes every rank's parameters and buffers equal to rank 0's.
  virtual absl::Status Synchronize(base::Deadline deadline) = 0;
  // Forward, backward and the mean of the gradients over the whole mini-batch, of which each rank
  // brings a part (the parts may differ in size). `images` [n, 3, H, W], `targets` [n, ...] of the
  // task (tasks/task.h).
  // OutOfRange names the rank whose loss is not finite, or the parameter whose gradient is not (on
  // a GPU as far as later gradients still tell); the parameters are as before. After Synchronize.
  virtual absl::StatusOr<StepResult> Step(const torch::Tensor& images, const torch::Tensor& targets,
                                          base::Deadline deadline) = 0;
  // Waits for the steps whose results no call has given yet: the mean of their losses, the sum of
  // their counts, and whether one of them says to stop. Before the parameters are looked at. Errors
  // as those of Step.
  virtual absl::StatusOr<StepResult> Settle(base::Deadline deadline) { return StepResult(); }
  // Counts those: an error of Step or Settle is about the first of them.
  virtual int64_t outstanding() const { return 0; }
  // Returns the model's main output in fp32, on the CPU, in evaluation mode, without communication.
  virtual absl::StatusOr<torch::Tensor> Predict(const torch::Tensor& images) = 0;
  // Sums in place; it is exact for integers below 2^53.
  virtual absl::Status SumOverRanks(std::span<double> values, base::Deadline deadline) = 0;
  // Copies rank 0's content into every rank's `tensor` (dense, of one size and type everywhere).
  virtual absl::Status Broadcast(torch::Tensor tensor, base::Deadline deadline) = 0;
  // Returns the residual of compressed gradients (what rounding has kept back from the parameters),
  // in flat memory per bucket, the same bits on every rank; none where they are not compressed.
  // Part of a run's state: the ranks go on from here as they would after RestoreResidual in a new
  // run. Every rank calls it before a checkpoint.
  virtual absl::StatusOr<std::vector<torch::Tensor>> SettleResidual(base::Deadline deadline) = 0;
  // Every rank gives the same `residual`.
  virtual absl::Status RestoreResidual(const std::vector<torch::Tensor>& residual,
                                       base::Deadline deadline) = 0;
  // Asks every rank to stop after the same step: see StepResult::stop. Thread-safe.
  virtual void RequestStop() = 0;
  // The optimizer reads the gradients and writes the parameters through these.
  virtual const std::vector<std::unique_ptr<Bucket>>& buckets() = 0;
};

}  // namespace tutti::parallel
