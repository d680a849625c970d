// PipelineParallel lays the layers of a model over ranks: each stage holds some neighbouring
// layers, computes micro-batches in the order of a timetable (timetable.h), and sends activations
// to the next stage and their gradients to the one before it. Replicas of the whole pipeline share
// each mini-batch, as ranks do in data parallelism.
//
//   stage 0, replica 0 | F0 F1 ..    --activations-->   stage 1, replica 0 | F0 ..
//                      |             <---gradients---                      |
//        |  sum of gradients, by bucket, while backward goes on  |
//   stage 0, replica 1 |                                stage 1, replica 1 |
//
// The step equals that of one process which accumulates the same micro-batches in the same order
// (DataParallel with as many), bit for bit where the arithmetic does not depend on how many ranks
// there are: dropout alone draws other masks. Batch-norm sees a micro-batch at a time; the running
// statistics are the mean of the replicas'.
//
// A rank holds its own stage's parameters alone, with their gradients and what the optimizer keeps.
//
// On GPUs what stages send each other goes through host memory; replicas sum as GpuSum does, after
// the last backward pass.
//
// A step ends with one message over all ranks: the losses, the wish to stop, what is not finite
// and, to clip, the norms of the gradients; no rank updates before all know that all can.
#pragma once

#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/stream.h"
#include "runtime/models/model.h"
#include "runtime/parallel/gpu_sum.h"
#include "runtime/parallel/gradient_reducer.h"
#include "runtime/parallel/mailbox.h"
#include "runtime/parallel/pipeline/partition.h"
#include "runtime/parallel/pipeline/timetable.h"
#include "runtime/parallel/step_tail.h"
#include "runtime/parallel/synchronous.h"
#include "runtime/tasks/classification.h"

namespace tutti::parallel {

struct PipelineOptions {
  Layout layout;  // of this rank
  Cut cut;        // the same on every rank, of layout.stages
  Timetable (*timetable)(int64_t stages, int64_t micro_batches) = OneForwardOneBackward;
  int64_t micro_batches = 1;  // of a replica's part of a mini-batch
  std::shared_ptr<const tasks::Task> task = std::make_shared<tasks::Classification>();
  bool bf16 = false;
  double clip_norm = 0;  // see DataParallelOptions
  torch::Device device = torch::kCPU;
  // Is told of each pass as it ends and how many seconds it computed, without waiting; for a trace.
  std::function<void(const Action& action, double seconds)> on_pass;
  OptimizerFactory optimizer;  // of the stage's parameters; null: see DataParallelOptions
};

class PipelineParallel final : public Synchronous {
 public:
  // Takes over the stage's layers of `whole`, which nobody else may hold on to, and lets go of the
  // others. Every rank calls it: the pairs of neighbours and the replicas form groups.
  // InvalidArgument: see CheckTrainable; or the model has no layers to cut at, or not in this way.
  static absl::StatusOr<std::unique_ptr<PipelineParallel>> Create(
      models::Model whole, std::unique_ptr<comm::Communicator> communicator,
      const PipelineOptions& options, base::Deadline deadline);

  // Leaves the neighbours all at once: each end waits for what it has begun, which ends when the
  // other one does it or leaves. What was sent arrives, unless a step has failed.
  ~PipelineParallel() override;

  absl::Status Synchronize(base::Deadline deadline) override;
  absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                        base::Deadline deadline) override;

 private:
  // Where this rank meets others; mailboxes are null where it has no neighbour.
  struct Groups {
    std::unique_ptr<comm::Communicator> replicas;
    std::unique_ptr<Mailbox> activations_in, activations_out, gradients_in, gradients_out;
  };
  // What a micro-batch has left behind between its two passes.
  struct Kept {
    torch::Tensor input, output;  // of the last stage the output is its loss
  };

  PipelineParallel(models::Model stage, std::vector<std::string> names, int64_t first_name,
                   std::unique_ptr<comm::Communicator> communicator, Groups groups,
                   const PipelineOptions& options);
  static absl::StatusOr<Groups> FormGroups(comm::Communicator& ranks,
                                           const PipelineOptions& options, base::Deadline deadline);

  comm::Stream& ranks() override { return ranks_; }
  comm::Stream& replicas() override { return replicas_; }

  absl::StatusOr<StepResult> Gradients(const Batch& batch) override;
  torch::Tensor Squares() const override { return squares_; }
  absl::Status Explained(const absl::Status& status) override;
  // Tells of a rank of replicas_ by its number among all.
  absl::Status OfReplicas(const absl::Status& status) const;
  absl::Status AddUp();
  absl::Status Do(const Action& action, StepTimes& times);
  void ShareBuffers();
  absl::StatusOr<torch::Tensor> Input(int64_t micro_batch);
  absl::Status Forward(int64_t micro_batch, StepTimes& times);
  absl::Status Backward(int64_t micro_batch, StepTimes& times);
  torch::Tensor Output(const torch::Tensor& input);
  torch::Tensor LossOf(const torch::Tensor& output, int64_t micro_batch);
  absl::Status TellAll(StepResult& result);
  absl::StatusOr<std::vector<Action>> ActionsFor(int64_t micro_batches);
  void Told(const Action& action, double seconds) const;

  const PipelineOptions options_;
  const std::vector<std::string> names_;  // of the whole model's trained parameters
  const int64_t first_name_;              // where those of this stage begin, in a row
  bool failed_ = false;
  MiniBatch whole_;  // over all replicas, when `counted_` is there
  comm::Stream::Ticket counted_ = 0;
  RankSummary own_;
  std::vector<Batch> parts_;  // of the current step, by micro-batch
  std::vector<Kept> kept_;    // likewise
  std::map<int64_t, std::vector<Action>> actions_;
  std::unique_ptr<GradientReducer> reducer_;  // on a CPU
  torch::Tensor squares_;                     // of the gradients' norms, of the whole model
  std::unique_ptr<Mailbox> activations_in_, activations_out_, gradients_in_, gradients_out_;
  comm::Stream replicas_;  // its thread works on the buckets
  comm::Stream ranks_;
  std::unique_ptr<GpuSum> gpu_sum_;  // over replicas_; on GPUs, of several replicas
};

}  // namespace tutti::parallel
