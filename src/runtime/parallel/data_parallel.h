// DataParallel trains by synchronous data parallelism: every rank has the whole model and a part of
// the mini-batch. The step equals that of one process with the whole mini-batch: exactly in the
// arithmetic of the gradients' mean, whatever the sizes of the parts; for batch-norm too where it
// is synchronized.
//
// Without synchronized batch-norm each rank normalises with its own part, and the running
// statistics are the mean of the ranks'. They, the loss and the ranks' wish to stop travel in the
// tail of the first bucket: a step has no message beside the buckets' and one of 16 bytes (the size
// of the mini-batch) that hides behind forward.
//
// Gradients may be accumulated over micro-batches, one after the other, in the memory that one of
// them takes. Batch-norm sees a micro-batch at a time, as it would see one of as many ranks' parts;
// for all else the step equals one over the rank's whole part.
//
// bf16 is autocast: convolutions and linear layers run in bf16, parameters, gradients, batch-norm
// parameters and the loss stay in fp32 (docs/decisions/005-training.md).
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/stream.h"
#include "runtime/models/model.h"
#include "runtime/parallel/bucket.h"
#include "runtime/parallel/gradient_reducer.h"
#include "runtime/parallel/step_tail.h"
#include "runtime/parallel/synchronous.h"
#include "runtime/tasks/classification.h"

namespace tutti::parallel {

struct DataParallelOptions {
  std::shared_ptr<const tasks::Task> task = std::make_shared<tasks::Classification>();
  bool bf16 = false;
  bool synchronized_batch_norm = false;
  int64_t accumulation = 1;  // micro-batches that a rank's part is computed in
  // 0: an eighth of the model, so that at most an eighth of the communication is left to do when
  // backward ends; between 64 KiB and 25 MiB.
  size_t bucket_bytes = 0;
  // How gradients are encoded between ranks, with error feedback; for models in fp32 only. Unset:
  // they are sent as they are.
  std::optional<comm::Encoding> compression;
  // The norm over all gradients that none is larger than: see ScaleToNorm. 0: as they are.
  double clip_norm = 0;
  OptimizerFactory optimizer;  // null: steps leave the gradients in the buckets
  int first_rank = 0;          // the group's first one, as errors call it
};

// Checks a model. InvalidArgument: a model without parameters to train, or not all fp32 or all
// fp64, or fp64 with compression.
absl::Status CheckTrainable(const models::ModelImpl& model, const DataParallelOptions& options);

class DataParallel final : public Synchronous {
 public:
  // Moves the model's parameters into buckets. Takes the communicator, whose group may be of one.
  // InvalidArgument: see CheckTrainable.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Create(
      models::Model model, std::unique_ptr<comm::Communicator> communicator,
      const DataParallelOptions& options);
  ~DataParallel() override;

  State state() override;
  absl::Status Synchronize(base::Deadline deadline) override;
  // Brings what compression has kept back up to date: the ranks go on from there as a run that is
  // resumed does.
  absl::StatusOr<StepResult> Settle(base::Deadline deadline) override;
  absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                        base::Deadline deadline) override;

 private:
  DataParallel(models::Model model, std::unique_ptr<comm::Communicator> communicator,
               const DataParallelOptions& options);
  comm::Stream& ranks() override { return stream_; }
  comm::Stream& replicas() override { return stream_; }
  absl::StatusOr<StepResult> Gradients(const Batch& batch) override;
  int64_t Passes(int64_t count) const;
  // Returns the sum of the micro-batch's losses, with its graph; adds what is to be told to `own`.
  torch::Tensor Forward(const Batch& micro_batch, RankSummary& own);
  std::vector<torch::Tensor> Outputs(const std::vector<torch::Tensor>& inputs);
  absl::Status ReadTail(StepResult& result);

  const DataParallelOptions options_;
  MiniBatch whole_;  // over all ranks
  StepTail tail_;    // of the first bucket
  std::unique_ptr<GradientReducer> reducer_;
  // What compression has kept back from the sums, by bucket [size], the same on every rank.
  std::vector<torch::Tensor> residual_;
  comm::Stream stream_;  // its thread works on all above
};

}  // namespace tutti::parallel
