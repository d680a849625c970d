// Declares the collectives for small data, whose time is the number of hops and not the number of
// bytes: all-reduce, broadcast and barrier.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

// Reduces by recursive doubling: after the exchange with the rank at distance 1, 2, 4, ... a rank
// holds the sum of 2, 4, 8, ... ranks (R. Thakur, R. Rabenseifner, W. Gropp: "Optimization of
// Collective Communication Operations in MPICH", 2005). Both partners put the part of the lower
// ranks first, so they hold equal bits. The ranks beyond the largest power of two give their data
// to a partner before and get the result after.
absl::Status DoublingAllReduce(Links& links, std::span<std::byte> data, const Reduction& reduction,
                               base::Deadline deadline);

// Goes down a binomial tree below the root: a rank receives once and then sends to ranks at
// distances that halve.
absl::Status TreeBroadcast(Links& links, std::span<std::byte> data, int root,
                           base::Deadline deadline);

// Does a dissemination (D. Hensgen, R. Finkel, U. Manber 1988): in round i a rank tells the one at
// distance 2^i and hears from the other side; after ceil(log2 n) rounds it has heard of all.
absl::Status DisseminationBarrier(Links& links, base::Deadline deadline);

}  // namespace tutti::comm
