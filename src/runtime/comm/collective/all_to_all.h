// PairwiseAllToAll exchanges in pairs: in round i = 1, ..., n-1 a rank sends to the one i to its
// right and receives from the one i to its left, both at once. Every rank sends and receives one
// part per round, so no rank is a target of two at the same time.
//
// No rank can deadlock. Of the ranks that are not done take one in the lowest round, i. The rank to
// its left is in round i or later, so it has sent or is sending what this one waits for, and bytes
// that come are always taken: their place is the caller's buffer. The rank to its right is in round
// i or later too: either it has taken all that this one sends, or it is in round i and takes it.
// Neither waits for anything else first, so this rank moves on.
#pragma once

#include "runtime/comm/collective/chunks.h"
#include "runtime/comm/collective/links.h"

namespace tutti::comm {

// Exchanges pair by pair; `input` is only read. Needs links to all ranks.
absl::Status PairwiseAllToAll(Links& links, const Chunks& input, const Chunks& output,
                              base::Deadline deadline);

}  // namespace tutti::comm
