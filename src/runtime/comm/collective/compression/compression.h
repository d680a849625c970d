// CompressedAllReduce reduces fp32 gradients in fewer bits between nodes: half of the bytes in 16
// bits, about a quarter in int8. Ranks that share nodes add up in fp32 first, where bytes are
// cheap:
//
//   within the node    reduce-scatter: local rank i has shard i of the node's sum
//   between nodes      the sum over all ranks with local rank i, encoded (encoded_sum.h)
//   within the node    all-gather of the shards
//
// so that a link carries what it would of one rank per node. Where the ranks are all on one node,
// or not as many on each, all of them take part in the encoded sum. All ranks end with the same
// bits. A mean is the sum, divided at the end.
//
// Error feedback (S. Karimireddy et al.: "Error Feedback Fixes SignSGD and other Gradient
// Compression Schemes", ICML 2019): what rounding has lost is kept, in both phases of the encoded
// sum, and added to the next call's values. No part of a gradient is lost for good, only late: over
// steps the mean of the results tends to the true mean, the difference being at most what is kept,
// divided by the number of steps. Without it rounding may lose the same small values every time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/collective/compression/encoded_sum.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {

// What rounding has lost of one buffer so far on this rank: one for each buffer that is reduced
// again and again. Begins as zero, and again when the number of values is another one.
class ErrorFeedback {
 public:
  std::span<float> Residual(size_t count) {
    if (residual_.size() != count) residual_.assign(count, 0);
    return residual_;
  }
  void Clear() { residual_.clear(); }

 private:
  std::vector<float> residual_;
};

// Serves one group, that of the first call, and many buffers, one after the other. Every function
// is a collective of the group. Thread-compatible.
class CompressedAllReduce {
 public:
  explicit CompressedAllReduce(Encoding encoding) : sum_(encoding) {}

  // Reduces in place; `op` is kSum or kMean (else InvalidArgument). `feedback` may be null. A group
  // of one leaves the values as they are. What is not finite at one rank is not finite at all
  // ranks, in int8 with up to 255 neighbours. After an error `feedback` holds garbage.
  absl::Status Run(Communicator& group, std::span<float> data, ReduceOp op, ErrorFeedback* feedback,
                   base::Deadline deadline);

  // For checkpoints: `total` becomes what is kept on all ranks together, which is what the sums
  // still lack, the same bits on every rank; and from now on each rank keeps only its own part of
  // it. So a run that goes on from here and one that begins with Restore of the same bits, on as
  // many ranks and nodes, stay equal. One all-reduce.
  absl::Status Settle(Communicator& group, ErrorFeedback& feedback, std::span<float> total,
                      base::Deadline deadline);
  absl::Status Restore(Communicator& group, ErrorFeedback& feedback, std::span<const float> total,
                       base::Deadline deadline);

 private:
  absl::Status FormLevels(Communicator& group, base::Deadline deadline);
  absl::Status RunLevels(Communicator& group, std::span<float> data, std::span<float> residual,
                         base::Deadline deadline);
  // Begins of the shards, and the end of the last one; a node's ranks have one each.
  std::vector<size_t> Shards(size_t count) const;

  EncodedSum sum_;
  bool formed_ = false;
  std::unique_ptr<Communicator> node_, across_;  // null: all ranks take part in the encoded sum
};

}  // namespace tutti::comm
