// GradientReducer begins each bucket's all-reduce as soon as its last gradient is there, while
// backward goes on.
//
//   backward  | fc | layer3 ....... | layer2 ....... | layer1 ....... |
//   stream         ^bucket 0: ======   ^bucket 1: ======   ^bucket 2: =====
//
// Buckets begin in the order of their index on every rank, whatever order gradients come in, so
// that ranks never meet in different buckets. Parameters that backward does not reach count as
// ready at its end, with a gradient of zero.
//
// Compressed (comm/collective/compression/compression.h), gradients take fewer bits on the wire,
// with an error feedback for each bucket; the tails, which hold counts and statistics, are summed
// as they are.
//
// Thread-compatible. Hooks stay on the parameters until destruction.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/collective/compression/compression.h"
#include "runtime/comm/stream.h"
#include "runtime/parallel/bucket.h"

namespace tutti::parallel {

class GradientReducer {
 public:
  // The buckets must outlive the reducer; the stream must end before it, since its thread works on
  // both. Compression is for buckets of fp32 alone.
  GradientReducer(const std::vector<std::unique_ptr<Bucket>>& buckets, comm::Stream& stream,
                  std::optional<comm::Encoding> compression);
  ~GradientReducer();

  // Zeroes the gradients; call before backward, which runs `passes` times and adds them up: a
  // bucket is ready when its gradients have come that often. `deadline` is the one of the step's
  // collectives.
  void Begin(base::Deadline deadline, int64_t passes = 1);
  // Call after the last backward: begins what has not begun and waits until every bucket holds the
  // sums.
  absl::Status Finish();

  // Returns the residual of compression (what rounding has kept back from the sums), per bucket
  // [size], to be kept by a checkpoint: see comm::CompressedAllReduce. None where nothing is
  // compressed. Between steps.
  absl::StatusOr<std::vector<torch::Tensor>> Settle(base::Deadline deadline);
  absl::Status Restore(const std::vector<torch::Tensor>& residual, base::Deadline deadline);

 private:
  void Ready(size_t bucket);
  void Launch(size_t bucket);
  void LaunchSum(const torch::Tensor& memory);
  void LaunchCompressed(size_t bucket);

  const std::vector<std::unique_ptr<Bucket>>& buckets_;
  comm::Stream& stream_;
  std::vector<size_t> missing_;  // gradients of all passes, per bucket
  size_t launched_ = 0;
  int64_t last_ticket_ = 0;
  std::unique_ptr<comm::CompressedAllReduce> compressed_;  // null: sums are exact
  std::vector<comm::ErrorFeedback> feedback_;              // per bucket
  base::Deadline deadline_ = base::Deadline::After(absl::ZeroDuration());
};

}  // namespace tutti::parallel
