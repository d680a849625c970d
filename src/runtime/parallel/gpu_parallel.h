// GpuParallel trains by synchronous data parallelism on GPUs, one a rank: with the same mathematics
// as DataParallel's, and the same buckets. What differs is that a GPU is told and not waited for:
//
// - Forward, backward and the gathering of the gradients are recorded once and started as one
//   (device/kernels/cuda.h; without its kernels they are put on the stream one by one).
// - In bf16, convolutions and linear layers compute with a copy of their weights that the optimizer
//   keeps; gradients are gathered in fp32, into the bucket.
// - No step is waited for: its result is given kAhead steps later. A loss or gradient that is not
//   finite keeps the optimizers of all ranks from any further update on the GPUs themselves
//   (Bucket::found_nonfinite), so that the parameters are those of the last good step when it is
//   heard of.
// - Several ranks add up what backward leaves by NCCL, or in host memory (gpu_sum.h).
//
// Decision 019 has the reasons and the figures. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <deque>
#include <memory>
#include <vector>

#include "runtime/comm/stream.h"
#include "runtime/device/device.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/gpu_input.h"
#include "runtime/parallel/gpu_sum.h"
#include "runtime/parallel/step_tail.h"

namespace tutti::parallel {

class GpuParallel final : public Synchronous {
 public:
  static constexpr size_t kAhead = 2;

  // Moves the model to `device`, which device::Open gave. InvalidArgument: see CheckTrainable; and
  // what GPUs do not do: fp64, accumulation, compression, and synchronized batch-norm over several
  // ranks.
  static absl::StatusOr<std::unique_ptr<GpuParallel>> Create(
      models::Model model, std::unique_ptr<comm::Communicator> communicator,
      const DataParallelOptions& options, torch::Device device);

  absl::Status Synchronize(base::Deadline deadline) override;
  absl::StatusOr<StepResult> Settle(base::Deadline deadline) override;
  int64_t outstanding() const override { return static_cast<int64_t>(reports_.size()); }
  absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                        base::Deadline deadline) override;

 private:
  // A step that the GPU is at, or has done.
  struct Report {
    torch::Tensor summaries;        // of every rank, on the host
    torch::Tensor found_nonfinite;  // one value there; not 0 if something is not finite
    MiniBatch whole;
    c10::Event written{c10::DeviceType::CUDA};
    // Around the sum over the ranks, waiting for slower ones included; with their times.
    c10::Event computed{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
    c10::Event summed{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
  };
  // A trained parameter, where its gradient goes, and the copy of it that forward uses.
  struct Trained {
    torch::Tensor parameter, gradient, copy;
  };

  GpuParallel(models::Model model, std::unique_ptr<comm::Communicator> communicator,
              const DataParallelOptions& options, torch::Device device);
  void MakeCopies();
  void SwapCopies();
  void RefreshCopies();
  comm::Stream& ranks() override { return stream_; }
  comm::Stream& replicas() override { return stream_; }
  absl::StatusOr<StepResult> Gradients(const Batch& batch) override;
  absl::Status ShareOut(const MiniBatch& part);
  void Run(bool renewed);
  void Record();
  void Compute();
  void Collect(const std::vector<torch::Tensor>& gradients);
  absl::Status AddUp(Report& report);
  void EnqueueResult(Report report);
  absl::Status CollectResult(StepResult& result);
  absl::Status Await(c10::Event& event, const char* what);
  absl::Status AwaitAllSoFar();
  std::vector<torch::Tensor> Outputs(const std::vector<torch::Tensor>& inputs) const;

  const DataParallelOptions options_;
  const torch::Device device_;
  StepTail tail_;
  std::vector<Trained> trained_;
  GpuInput input_;
  MiniBatch whole_;  // over all ranks; share_ is the inverse of its units
  MiniBatch sum_of_parts_;
  double seconds_in_sum_ = 0;  // of the GPU, at the step that was heard of last
  torch::Tensor share_, found_nonfinite_;
  std::unique_ptr<device::Graph> graph_;
  std::deque<Report> reports_;
  comm::Stream stream_;
  std::unique_ptr<GpuSum> sum_;  // over it; null in a group of one
};

}  // namespace tutti::parallel
