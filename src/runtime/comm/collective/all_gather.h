// BruckAllGather gathers small data in log2(n) hops, where the ring (ring.h) takes n-1.
//
// J. Bruck et al.: "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing
// Systems", 1997. A rank keeps the chunks in the order in which they come: its own, then its right
// neighbours'. When it has d of them, d = 1, 2, 4, ..., it gives them to the rank d to its left and
// gets from the one d to its right the next d (in the last round only those that it lacks).
#pragma once

#include "runtime/comm/collective/chunks.h"
#include "runtime/comm/collective/links.h"

namespace tutti::comm {

// Fills each rank's chunk of `output`, this one's own already filled.
absl::Status BruckAllGather(Links& links, const Chunks& output, base::Deadline deadline);

}  // namespace tutti::comm
