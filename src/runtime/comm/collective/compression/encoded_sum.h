// EncodedSum computes the sum over the ranks of a group, encoded on the wire (encoding.h). It has
// two phases, as in 1-bit Adam's compressed all-reduce (H. Tang et al. 2021):
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
// every rank. In one step a single all-to-all carries phase 1 of one segment together with phase 2
// of the one two before it, while a thread beside the caller's calculates what comes next:
//
//   step           0           1           2               3               4
//   the caller     |  1 of A   |  1 of B   |  1 of C, 2 of A  |  1 of D, 2 of B  | ...
//   beside it      |  encode B |  sum up A |  sum up B,       |  sum up C,       |
//                  |           |  encode C |  encode D        |  decode A, ...   |
//
// so the wire waits for no calculation but the encoding of the first segment, and one message a
// step keeps the pauses between messages few.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/collective/compression/compute_thread.h"
#include "runtime/comm/collective/compression/encoding.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {

// Thread-compatible. Memory is kept from call to call. Throws std::bad_alloc and std::system_error
// where there is no memory or no thread; nothing of the call is in use any more then.
class EncodedSum {
 public:
  explicit EncodedSum(Encoding encoding);
  ~EncodedSum();

  // Sums in place. `residual` is empty or as long as `data`: where this rank owns the part, what
  // encoding the sum has lost, elsewhere what encoding its values has.
  absl::Status Run(Communicator& group, std::span<float> data, std::span<float> residual,
                   base::Deadline deadline);

  // Visits [begin, end) of the values that rank `rank` of `size` sums up, in ascending order.
  static void ForEachPartOf(int rank, int size, size_t count,
                            const std::function<void(size_t begin, size_t end)>& visit);

 private:
  struct Call;
  struct Message;

  Message& At(int64_t step);
  void Calculate(const Call& call, int64_t step);
  absl::Status RunStep(const Call& call, int64_t step);

  const Encoding encoding_;
  std::vector<Message> messages_;  // the one before, the present one and the next
  ComputeThread compute_thread_;
};

}  // namespace tutti::comm
