// HalvingDoublingAllReduce reduces by recursive halving and doubling (R. Rabenseifner 2004; R.
// Thakur, R. Rabenseifner, W. Gropp: "Optimization of Collective Communication Operations in
// MPICH", 2005): as few bytes as the ring where the ranks are a power of two p, in 2 log2(p) hops
// and not 2 (p-1). Rabenseifner 2004; R. Thakur, R. Rabenseifner, W. Gropp: "Optimization of
// Collective Communication Operations in MPICH", 2005): as few bytes as the ring where the ranks
// are a power of two p, in 2 log2(p) hops and not 2 (p-1).
//
// The data is cut into p chunks. Partners at distance p/2, p/4, ..., 1 exchange halves of what they
// still hold: either sends the half that the other keeps, and adds what comes to its own as it
// comes. A rank then holds its chunk of the sum, and the way back, distance 1, 2, ..., p/2, puts
// the halves together. Of the n-p ranks beyond, each first shares the addition with its partner at
// distance p, half the data each, gives its half away, and gets the result at the end.
//
// No rank can deadlock: in every hop two partners send to and take from each other at once, which
// ends by itself (links.h), and a hop waits only for the partner's earlier hops.
//
// Order of the additions: given by the ranks alone. Every element of the result is calculated on
// one rank and copied, so all ranks end with equal bits.
#pragma once

#include <cstddef>

#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

absl::Status HalvingDoublingAllReduce(Links& links, std::byte* data, size_t count,
                                      const Reduction& reduction, base::Deadline deadline);

}  // namespace tutti::comm
