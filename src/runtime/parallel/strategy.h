// Strategy is the interface for how one step runs on many ranks: every way to train implements it,
// and the training loop calls it alone. The loop does not know how many ranks there are, which of
// them hold which part of the model, how they share the work, or when they hear of each other.
//
// A step is forward, backward, exchange and update, all inside Step. What a rank does in it stands
// in its layout; what it holds is its state.
//
// Every rank makes the same calls of Synchronize, Settle, Predict and of what goes over all ranks,
// in the same order: these are collective. Whether Step is, is the strategy's (in_step).
// Thread-compatible, save for RequestStop. After an error (which names the rank that caused it)
// only the destructor may be called.
#pragma once

#include <torch/types.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/stream.h"
#include "runtime/models/model.h"
#include "runtime/parallel/bucket.h"
#include "runtime/parallel/layout.h"
#include "runtime/parallel/state_tensor.h"

namespace tutti::parallel {

// A rank's part of a mini-batch (the parts may differ in size). Every stage of a replica gets the
// targets, its first one the inputs too.
struct Batch {
  std::vector<torch::Tensor> inputs;  // each [n, ...], what the model takes; none: see Layout
  torch::Tensor targets;              // [n, ...], of the task (tasks/task.h)

  // Returns it as so many nearly equal runs of samples, at least one.
  std::vector<Batch> Split(int64_t count) const;
};

// Returns each tensor on that device: itself, if it is there.
std::vector<torch::Tensor> OnDevice(const std::vector<torch::Tensor>& tensors,
                                    torch::Device device);

// How many seconds each part of a step took; they add up to the step.
struct StepTimes {
  double forward = 0;
  double backward = 0;
  double communication = 0;  // waiting for other ranks: what overlap did not hide
  double update = 0;
};

// What this rank knows after a step: of the whole mini-batch where the ranks meet in it, of its own
// part where they do not. Nobody may conclude from it what another rank knows.
//
// A GPU works on while the CPU prepares what comes next: then the result is that of an earlier step
// or, at first, of none (a count of 0), and Settle gives what is outstanding.
struct StepResult {
  double loss = 0;      // mean over the task's units
  int64_t correct = 0;  // samples, where the task counts them
  int64_t count = 0;    // samples
  // This was the last step, because some rank had called RequestStop before: all ranks hear it
  // after the same step, or at the same Settle.
  bool stop = false;
  StepTimes times;  // of this rank
};

// What a rank does next, between two meetings of all ranks.
struct Turn {
  int64_t done = 0;  // steps of the run, whoever did them, as far as this rank knows
  // Tells whether this rank does a step now, with the next batch of its source. It is told `last`
  // otherwise.
  bool works = true;
  // Tells whether no other turn comes before the ranks meet, which is after `done` steps and this
  // one.
  bool last = false;
  // The steps whose batches this rank is to take, in this order, behind those that it was told
  // before (Strategy::hands_out).
  std::vector<int64_t> steps = {};
};

// What a rank measures besides times: a name and a value, since it was last asked.
struct Figure {
  std::string name;
  double value = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual const Layout& layout() const = 0;
  int rank() const { return layout().rank; }
  int world_size() const { return layout().world_size; }
  // Returns what this rank holds of the model, under the names of the whole.
  virtual const models::Model& model() const = 0;
  // Returns where its trained parameters and their gradients lie.
  virtual const Buckets& buckets() const = 0;

  // Returns what this rank holds of the run, up to date after Synchronize and Settle. It may be
  // written to before Synchronize.
  virtual State state() = 0;
  // Makes what several ranks hold equal to what its writer holds, and takes up what was written to
  // the state. Before the first step.
  virtual absl::Status Synchronize(base::Deadline deadline) = 0;
  // Returns what to do after `step` steps of the run; after `end` of them all ranks meet. Ranks
  // that take turns wait here for theirs, and those that serve for what they serve.
  virtual absl::StatusOr<Turn> NextTurn(int64_t step, int64_t end, base::Deadline deadline) {
    return Turn{.done = step, .last = step + 1 == end};
  }
  // Tells whether turns say which batches a rank takes; else each takes its part of every step's.
  bool hands_out() const { return layout().takes_turns; }
  // Forward, backward, the mean of the gradients over the mini-batch, and the optimizer's update
  // (without an optimizer the gradients stay in the buckets, and the parameters as they were).
  // OutOfRange names the rank whose loss is not finite, or the parameter whose gradient is not (on
  // a GPU as far as later gradients still tell); the parameters are as before. After Synchronize.
  virtual absl::StatusOr<StepResult> Step(const Batch& batch, double learning_rate,
                                          base::Deadline deadline) = 0;
  // Waits for the steps whose results no call has given yet: the mean of their losses, the sum of
  // their counts, and whether one of them says to stop. Before the state is looked at. Errors as
  // those of Step.
  virtual absl::StatusOr<StepResult> Settle(base::Deadline deadline) { return StepResult(); }
  // Counts those: an error of Step or Settle is about the first of them.
  virtual int64_t outstanding() const { return 0; }
  // Tells whether all ranks are in the same step anyway, so that to meet between two costs little.
  virtual bool in_step() const { return true; }
  // Returns what is to be told of the exchange, since the last call: the same names on every rank.
  virtual std::vector<Figure> Figures() { return {}; }
  // Returns the model's main output in fp32 (fp64 if the model is), on the CPU, in evaluation mode;
  // undefined unless the rank has outputs. `inputs` as those of a Batch.
  virtual absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                                base::Deadline deadline) = 0;
  // Puts what the finished model has in the place of what is trained, if that differs (averages);
  // again: back.
  virtual void SwapWeights() {}
  // Asks every rank to stop: see StepResult::stop. Thread-safe.
  virtual void RequestStop() = 0;

  // Sums in place over all ranks; it is exact for integers below 2^53.
  absl::Status SumOverRanks(std::span<double> values, base::Deadline deadline);
  // Sums these in place too, by the same message, each times `scale`: in fp64 on the way.
  absl::Status SumOverRanks(std::span<double> values, const std::vector<torch::Tensor>& tensors,
                            double scale, base::Deadline deadline);
  // Sends rank 0's to all ranks. `tensor` is dense, of the same size and type on each.
  absl::Status Broadcast(const torch::Tensor& tensor, base::Deadline deadline);
  // Sends a tensor to another rank, which calls Receive with one of the same size and type,
  // whatever its strides and device; only these two call it.
  absl::Status Send(const torch::Tensor& tensor, int to, base::Deadline deadline);
  absl::Status Receive(torch::Tensor tensor, int from, base::Deadline deadline);

 protected:
  virtual comm::Stream& ranks() = 0;  // all of them
  // Sends the first rank's of a group.
  static absl::Status BroadcastOver(comm::Stream& group, const torch::Tensor& tensor,
                                    base::Deadline deadline);
};

}  // namespace tutti::parallel
