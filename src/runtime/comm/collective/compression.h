// All-reduce of fp32 in fewer bits on the wire (encoding.h): half of the bytes in 16 bits, about a
// quarter in int8. Two phases, as in 1-bit Adam's compressed all-reduce (H. Tang et al. 2021):
//
//   1. each rank encodes its values of chunk r and sends them to rank r (all-to-all); rank r
//      decodes and adds in fp32 what it gets to its own values, which are not encoded;
//   2. rank r encodes the sum and sends it to all (all-gather); all, rank r too, decode it.
//
// So every value is rounded twice, whatever the number of ranks n, each link carries 2 (n-1)/n of
// the encoded bytes per direction, as in a ring, and all ranks end with the same bits, being
// decoded from the same bytes. Chunks are added in the order: the owner's, then ranks 0, 1, ...
//
// Error feedback (S. Karimireddy et al.: "Error Feedback Fixes SignSGD and other Gradient
// Compression Schemes", ICML 2019): what rounding has lost is kept, in both phases, and added to
// the next call's values. No part of a gradient is lost for good, only late: over steps the mean of
// the results tends to the true mean, the difference being at most what is kept, divided by the
// number of steps. Without it rounding may lose the same small values every time.
//
// A mean is a sum that is divided when it has been decoded.
//
// Calculating overlaps with sending: the data is cut into segments, and while one segment is on the
// wire the one before it is decoded and the one after it encoded, by a thread beside the caller's:
//
//   caller's   | all-to-all 1         | all-gather 0                | all-to-all 2   | ...
//   beside     | add 0, encode sum 0  | decode all -1, encode all 2 | add 1, ...     |
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/collective/calculator.h"
#include "runtime/comm/collective/encoding.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {

// What rounding has lost of one buffer so far: one for each buffer that is reduced again and again,
// on every rank. Begins as zero, and again when the number of values, of ranks or this rank's own
// number is another one. Plain data.
class ErrorFeedback {
 public:
  // [count]: in this rank's own chunks what the sums have lost, elsewhere what its values have.
  std::span<float> Residual(int rank, int size, size_t count);
  void Clear() { *this = {}; }

  // For checkpoints: `owed` becomes what is kept on all ranks together, which is what the sums
  // still lack, and from now on each rank keeps its own chunks of it and nothing else. So a run
  // that goes on from here and one that begins with TakeUp of the same bits, on as many ranks, stay
  // equal. One all-reduce.
  absl::Status Settle(Communicator& group, std::span<float> owed, base::Deadline deadline);
  void TakeUp(int rank, int size, std::span<const float> owed);

 private:
  int rank_ = -1;
  int size_ = 0;
  std::vector<float> residual_;
};

// Thread-compatible. One object serves many buffers, one after the other.
class CompressedAllReduce {
 public:
  explicit CompressedAllReduce(Encoding encoding);
  ~CompressedAllReduce();

  // In place; `op` is kSum or kMean (else InvalidArgument). `feedback` may be null. A group of one
  // leaves the values as they are. What is not finite at one rank is not finite at all ranks, in
  // int8 with up to 255 neighbours. After an error `feedback` holds no more than garbage: Clear it.
  absl::Status Run(Communicator& group, std::span<float> data, ReduceOp op, ErrorFeedback* feedback,
                   base::Deadline deadline);

 private:
  class Segment;
  struct Call;
  absl::Status RunSegments(const Call& call);

  const Encoding encoding_;
  std::vector<Segment> segments_;  // those that are on their way; memory is kept for the next call
  Calculator calculator_;
};

}  // namespace tutti::comm
