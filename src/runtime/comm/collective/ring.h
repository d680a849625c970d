// Declares the ring's collectives: every rank sends to its right neighbour and receives from its
// left one, and each link carries the least that any algorithm can (P. Patarasuk, X. Yuan:
// "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009). Patarasuk, X.
// Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009).
//
// All-reduce. The n ranks cut the data into n chunks. Rank r sends the pieces 0, 1, ..., 2n-3, of
// which piece k is chunk r-k (mod n), and receives from its left neighbour, which does the same, as
// piece k chunk r-k-1. The first n-1 pieces received are added to the rank's own data
// (reduce-scatter), the others are final and replace it (all-gather). With n = 3, what each rank
// sends, * marking what is final:
//
//            piece 0   piece 1        piece 2        piece 3
//   rank 0   a0        c2+c0          b1+b2+b0 *     a0+a1+a2 *        (0 -> 1 -> 2 -> 0)
//   rank 1   b1        a0+a1          c2+c0+c1 *     b1+b2+b0 *
//   rank 2   c2        b1+b2          a0+a1+a2 *     c2+c0+c1 *
//
// Piece k+1 is, byte for byte, piece k as received and added to. So the whole exchange is one
// stream that passes through a rank: it may send its first chunk at once, and then every byte as
// soon as the same byte has come and been added. There are no steps to wait between: receiving,
// adding and sending overlap, as finely as bytes come.
//
// No rank can deadlock. Taking has no condition but that bytes have come: their place is always the
// caller's buffer. Let s[r] be what rank r has sent and t[r] what it has taken, and suppose that
// all stand still. Nobody can take, so t[r] = s[r-1], every link is empty, and nobody's sending
// waits for room: whoever has not sent all waits for bytes that have not come, s[r] = t[r] + |chunk
// r| = s[r-1] + |chunk r|, while one whose left neighbour has sent all has nothing to wait for. So
// if one is not done, none is, and adding the equations around the ring gives 0 = |data|: there was
// nothing to send.
//
// No byte is overwritten before it has left: a final byte comes only after this rank's own
// contribution to it has gone once around.
//
// Order of the additions: chunk c is x[c] first, then x[c+1], ..., x[c+n-1], whatever the timing.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/comm/collective/chunks.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

absl::Status RingAllReduce(Links& links, std::byte* data, size_t count, const Reduction& reduction,
                           base::Deadline deadline);

// Fills each rank's chunk of `output`, this one's own already filled: the second half of the
// all-reduce.
absl::Status RingAllGather(Links& links, const Chunks& output, base::Deadline deadline);

// ChainBroadcast sends large data along a chain from the root over its right neighbours, through
// which the bytes pass as one stream. Each link carries them once, and all links are busy at the
// same time.
absl::Status ChainBroadcast(Links& links, std::span<std::byte> data, int root,
                            base::Deadline deadline);

}  // namespace tutti::comm
