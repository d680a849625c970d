// The sum over the ranks of a group, encoded on the wire (encoding.h). Two phases, as in 1-bit
// Adam's compressed all-reduce (H. Tang et al. 2021):
//
//   1. each rank encodes its values of part r and sends them to rank r (all-to-all); rank r decodes
//      them and adds them in fp32 to its own values, which are not encoded;
//   2. rank r encodes the sum and sends it to all (all-gather); all, rank r too, decode it.
//
// So every value is rounded twice, whatever the number of ranks n; a link carries 2 (n-1)/n of the
// encoded bytes per direction, as in a ring; and all ranks end with the same bits, decoded from the
// same bytes. The order of the additions: the owner's values, then those of ranks 0, 1, ...
//
// Calculating overlaps with sending. The data is cut into segments, each of which has a part for
// every rank; while one segment is on the wire, the one before it is decoded and the one after it
// encoded, by a thread beside the caller's:
//
//   the caller   | all-to-all 1            | all-gather 0 | all-to-all 2            | all-gather 1
//   beside it    | sum up 0, encode for 2  |              | sum up 1, encode for 3  | decode 0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/collective/calculator.h"
#include "runtime/comm/collective/encoding.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {

// Thread-compatible. Memory is kept from call to call.
class EncodedSum {
 public:
  explicit EncodedSum(Encoding encoding);
  ~EncodedSum();

  // In place. `residual` is empty or as long as `data`: where this rank owns the part, what
  // encoding the sum has lost, elsewhere what encoding its values has.
  absl::Status Run(Communicator& group, std::span<float> data, std::span<float> residual,
                   base::Deadline deadline);

  // [begin, end) of the values that rank `rank` of `size` sums up, in ascending order.
  static void ForEachPartOf(int rank, int size, size_t count,
                            const std::function<void(size_t begin, size_t end)>& visit);

 private:
  class Segment;
  struct Call;

  absl::Status RunSegments(const Call& call, size_t length, int64_t count);

  const Encoding encoding_;
  std::vector<Segment> segments_;  // those that are on their way
  Calculator calculator_;
};

}  // namespace tutti::comm
