// TwoLevel all-reduces over several nodes of which some have several ranks.
//
// Large data: the ranks of a node reduce-scatter (node_collectives.h), so that its l-th rank has
// the node's sum of the l-th chunk; the l-th ranks of all nodes, lane l, all-reduce their chunk
// over the network; the ranks of a node all-gather.
//
//     node 0:  rank 0 --- chunk 0 --- rank 2  :node 1       lane 0
//                 |                      |
//              rank 1 --- chunk 1 --- rank 3                lane 1
//
// Every byte so crosses the network as if each node were one rank, through as many connections at
// once as there are lanes: as many as the smallest node has ranks. Small data: the node's sum, the
// first ranks of the nodes (lane 0) alone, then a broadcast within the node. A lane all-reduces by
// the algorithm that is fastest for it (all_reduce.h).
//
// No deadlock: three collectives one after the other, which all ranks of a node or of a lane call
// in the same order.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/node/node_team.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

class TwoLevel {
 public:
  // Makes it, null where there are not two levels: one node alone, or no node with several ranks.
  // `team` is this rank's, null if it is alone on its node; it stays the caller's.
  static absl::StatusOr<std::unique_ptr<TwoLevel>> Make(const Links& links, NodeTeam* team);

  absl::Status AllReduce(std::byte* data, size_t count, const Reduction& reduction,
                         base::Deadline deadline);

 private:
  TwoLevel(NodeTeam* team, std::optional<Links> lane, int lanes)
      : team_(team), lane_(std::move(lane)), lanes_(lanes) {}
  absl::Status Small(std::span<std::byte> data, const Reduction& reduction,
                     base::Deadline deadline);
  absl::Status Large(std::byte* data, size_t count, const Reduction& reduction,
                     base::Deadline deadline);
  absl::Status ReachLane(base::Deadline deadline);
  int local_rank() const { return team_ == nullptr ? 0 : team_->rank(); }
  int local_size() const { return team_ == nullptr ? 1 : team_->size(); }

  NodeTeam* const team_;
  std::optional<Links> lane_;  // none for a rank beyond the lanes
  const int lanes_;
  bool reached_ = false;
};

}  // namespace tutti::comm
