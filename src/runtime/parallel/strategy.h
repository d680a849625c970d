// Strategy is the interface for how one step runs on many ranks: every way to train implements it,
// and the training loop calls it alone. The loop does not know how many ranks there are, which of
// them hold which part of the model, or how they share the work.
//
// A step is forward, backward, exchange and update, all inside Step. What a rank does in it stands
// in its layout. The run's state is tensors under the names of the whole model: each rank holds
// some of them (model(), and what the optimizer keeps of buckets()), replicas hold the same bits,
// and of each one rank is the writer (Layout::writes_state).
//
// Every rank makes the same calls in the same order: stepping, predicting, saving and summing are
// collective. Thread-compatible, save for RequestStop. After an error (which names the rank that
// caused it) only the destructor may be called.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/stream.h"
#include "runtime/models/model.h"
#include "runtime/parallel/layout.h"

namespace tutti::parallel {

// A replica's part of a mini-batch (the parts may differ in size). Every stage of a replica gets
// the targets, its first one the inputs too.
struct Batch {
  torch::Tensor inputs;   // [n, ...], what the model takes; undefined unless the rank reads inputs
  torch::Tensor targets;  // [n, ...], of the task (tasks/task.h)
};

// How many seconds each part of a step took; they add up to the step.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double communication = 0;  // waiting for other ranks: what overlap did not hide
  double update = 0;
};

// It tells of the whole mini-batch, over all ranks, and is the same on every rank.
//
// A GPU works on while the CPU prepares what comes next: then the result is that of an earlier step
// or, at first, of none (a count of 0), and Settle gives what is outstanding.
struct StepResult {
  double loss = 0;      // mean over the task's units
  int64_t correct = 0;  // samples, where the task counts them
  int64_t count = 0;    // samples
  bool stop = false;    // some rank had called RequestStop before this step's backward
  StepTimes times;      // of this rank
};

// Updates the parameters in the buckets from the gradients there. None: a step leaves the gradients
// in the buckets and the parameters as they were.
using Update = std::function<void()>;

// A contiguous run of parameters with their gradients, reduced and updated as one: flat memory of
// which the model's parameters and their .grad are views. See bucket.h.
class Bucket;

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual const Layout& layout() const = 0;
  int rank() const { return layout().rank; }
  int world_size() const { return layout().world_size; }
  // Returns what this rank holds of the model, under the names of the whole.
  virtual const models::Model& model() const = 0;
  // The optimizer reads the gradients and writes the parameters through these.
  virtual const std::vector<std::unique_ptr<Bucket>>& buckets() const = 0;

  // Makes what replicas hold equal to what their writer holds.
  virtual absl::Status Synchronize(base::Deadline deadline) = 0;
  // Forward, backward, the mean of the gradients over the whole mini-batch, and the update.
  // OutOfRange names the rank whose loss is not finite, or the parameter whose gradient is not (on
  // a GPU as far as later gradients still tell); the parameters are as before. After Synchronize.
  virtual absl::StatusOr<StepResult> Step(const Batch& batch, const Update& update,
                                          base::Deadline deadline) = 0;
  // Waits for the steps whose results no call has given yet: the mean of their losses, the sum of
  // their counts, and whether one of them says to stop. Before the parameters are looked at. Errors
  // as those of Step.
  virtual absl::StatusOr<StepResult> Settle(base::Deadline deadline) { return StepResult(); }
  // Counts those: an error of Step or Settle is about the first of them.
  virtual int64_t outstanding() const { return 0; }
  // Returns the model's main output in fp32 (fp64 if the model is), on the CPU, in evaluation mode;
  // undefined unless the rank has outputs. `inputs` as those of a Batch.
  virtual absl::StatusOr<torch::Tensor> Predict(const torch::Tensor& inputs,
                                                base::Deadline deadline) = 0;

  // Sums in place over all ranks; it is exact for integers below 2^53.
  absl::Status SumOverRanks(std::span<double> values, base::Deadline deadline);
  // Sends rank 0's to all ranks, or the writer's to its replicas. `tensor` is dense, of the same
  // size and type on each.
  absl::Status Broadcast(const torch::Tensor& tensor, base::Deadline deadline);
  absl::Status BroadcastToReplicas(const torch::Tensor& tensor, base::Deadline deadline);
  // Runs one collective over all ranks.
  absl::Status Run(comm::Stream::Collective collective) { return ranks().Run(collective); }

  // Returns the residual of compressed gradients (what rounding has kept back from the parameters),
  // in flat memory per bucket, the same bits on every replica; none where they are not compressed.
  // Part of a run's state: the ranks go on from here as they would after RestoreResidual in a new
  // run. Every rank calls it before a checkpoint.
  virtual absl::StatusOr<std::vector<torch::Tensor>> SettleResidual(base::Deadline deadline) {
    return std::vector<torch::Tensor>();
  }
  // Every replica gives the same `residual`.
  virtual absl::Status RestoreResidual(const std::vector<torch::Tensor>& residual,
                                       base::Deadline deadline) {
    return absl::OkStatus();
  }
  // Asks every rank to stop after the same step: see StepResult::stop. Thread-safe.
  virtual void RequestStop() = 0;

 protected:
  virtual comm::Stream& ranks() = 0;     // all of them
  virtual comm::Stream& replicas() = 0;  // those that hold what this one holds
};

}  // namespace tutti::parallel
