// Declares the reduce-scatters: every rank ends with its chunk of the reduction of all ranks'
// inputs.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

// Does the first half of the ring's all-reduce (ring.h), shifted by one so that a rank ends with
// its own chunk: piece k that rank r sends is chunk r-k-1, piece k that it receives is chunk r-k-2,
// for k = 0, ..., n-2. The input is not changed: piece k+1 is piece k as received, added to the
// input in one of two blocks of scratch memory, as long as the longest chunk each; the last piece
// is added in the output.
//
// A piece is taken only when its block is free: piece k when this rank has sent its piece k-1,
// which came from that block. No rank can deadlock all the same. Suppose that all stand still, and
// take a rank that has taken least, k whole pieces. If k is all of them, everybody has taken all
// and so everybody has sent all. Else its left neighbour has taken at least k as well, so the piece
// k that this rank waits for is ready there and is sent as soon as the link has room: if bytes do
// not move, some lie in the link and the block is not free. But then this rank has not sent all of
// piece k-1, which its right neighbour, having taken at least k pieces, has taken.
//
// Order of the additions: chunk c is x[c+1] first, then x[c+2], ..., x[c+n-1], x[c].
absl::Status RingReduceScatter(Links& links, const std::byte* input, std::span<const size_t> counts,
                               std::byte* output, const Reduction& reduction,
                               base::Deadline deadline);

// Does recursive halving (R. Thakur, R. Rabenseifner, W. Gropp 2005): partners at distance p/2,
// p/4, ..., 1 exchange the halves of what they still hold that the other needs, log2(p) hops. The
// ranks beyond the largest power of two p fold into a partner before and get their chunk after.
absl::Status HalvingReduceScatter(Links& links, const std::byte* input,
                                  std::span<const size_t> counts, std::byte* output,
                                  const Reduction& reduction, base::Deadline deadline);

}  // namespace tutti::comm
