// GpuSum sums over the ranks what lies on their GPUs: by NCCL, on the stream that computes, where
// every rank has a GPU of its own and NCCL is there (decision 016); else through host memory, by
// the ranks' communicator. Which of the two is agreed on by all ranks. Thread-compatible.
#pragma once

#include <c10/core/Event.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/stream.h"

namespace tutti::parallel {

class GpuSum {
 public:
  virtual ~GpuSum() = default;

  // Adds up in place over all ranks: fp32, dense, of the same sizes on every rank; all call it.
  // What is put on the current stream from now on sees the sums. An error names the rank that was
  // lost, and is the last.
  virtual absl::Status Add(const std::vector<torch::Tensor>& tensors, base::Deadline deadline) = 0;
  // Waits until the GPU has come to `event`, behind sums or not; a rank that is lost ends the wait.
  virtual absl::Status Await(c10::Event& event, const char* what, base::Deadline deadline) = 0;
  // Tells whether Add waits for the GPU.
  virtual bool waits() const = 0;
};

struct GpuSumChoice {
  std::unique_ptr<GpuSum> sum;
  std::string why_host;  // why it is not NCCL; empty where it is
};

// All ranks of the stream's group call it; the stream must outlive what is made.
absl::StatusOr<GpuSumChoice> MakeGpuSum(comm::Stream& stream, torch::Device device,
                                        base::Deadline deadline);

}  // namespace tutti::parallel
