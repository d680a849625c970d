// Declares the collectives of a node's team, which go through the memory that its ranks share.
//
// Three ways, by size and by where the data lie:
//
//   flat      Every rank copies its data into its slot; in the next phase each reads all slots and
//             computes the whole result. One phase, for small data.
//   direct    Where all data lie in shared buffers: each rank reduces its chunk from everybody's
//             data and writes the result into everybody's. Each byte is read once and written once:
//             the least traffic there can be.
//   staged    For any other data: in blocks, as a pipeline of three steps. In one phase a rank
//             copies its part of block t for the others into its slot, reduces its own chunk of
//             block t - 1 from all slots (into its data and its slot), and copies the others'
//             results of block t - 2 out of theirs. Slots fit into the second-level cache, so that
//             memory sees each byte once here, too.
//
//             phase      t            t + 1         t + 2
//             block t    copy in      reduce        copy out
//
// The additions are in the order of the ranks in every one of them, so that the bits do not depend
// on which is taken. `count` and sizes are equal on all ranks of the team; nothing is aligned.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/comm/collective/chunks.h"
#include "runtime/comm/collective/node/node_team.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

// Reduces it; with `last` a mean is divided (by reduction.ranks).
absl::Status NodeAllReduce(NodeTeam& team, std::byte* data, size_t count,
                           const Reduction& reduction, bool last, base::Deadline deadline);

// Chunk r of `input` is rank r's. `output` may be this rank's chunk in `input`.
absl::Status NodeReduceScatter(NodeTeam& team, const Chunks& input, std::byte* output,
                               const Reduction& reduction, bool last, base::Deadline deadline);

absl::Status NodeBroadcast(NodeTeam& team, std::span<std::byte> data, int root,
                           base::Deadline deadline);

// Fills each rank's chunk of `output`, this one's own already filled.
absl::Status NodeAllGather(NodeTeam& team, const Chunks& output, base::Deadline deadline);

absl::Status NodeBarrier(NodeTeam& team, base::Deadline deadline);

}  // namespace tutti::comm
