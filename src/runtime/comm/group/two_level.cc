#include "runtime/comm/group/two_level.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/comm/collective/all_reduce.h"
#include "runtime/comm/collective/chunks.h"
#include "runtime/comm/collective/node/form.h"
#include "runtime/comm/collective/node/node_collectives.h"

namespace tutti::comm {
namespace {

// Up to here the number of phases decides, beyond it the number of bytes (4 ranks on 2 nodes of one
// machine: 30 and 78 us at 32 KB, 160 and 170 us at 256 KB).
constexpr size_t kSmallMessage = 256 << 10;

// The ranks of each node, in the order of the nodes' first ranks.
absl::StatusOr<std::vector<std::vector<int>>> Nodes(const Table& table) {
  std::vector<std::vector<int>> nodes;
  std::vector<bool> seen(table.ranks.size());
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    if (seen[rank]) continue;
    TUTTI_ASSIGN_OR_RETURN(nodes.emplace_back(), NeighboursOf(table, static_cast<int>(rank)));
    for (const int member : nodes.back()) seen[member] = true;
  }
  return nodes;
}

// A chunk for each of the first `lanes` ranks of the node, nothing for those beyond.
Chunks ChunksOf(std::byte* data, size_t count, size_t width, int lanes, int ranks) {
  const Chunks even = Chunks::Even(nullptr, count, width, lanes);
  std::vector<size_t> sizes(ranks);
  for (int lane = 0; lane < lanes; ++lane) sizes[lane] = even[lane].size() / width;
  return Chunks(data, sizes, width);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TwoLevel>> TwoLevel::Make(const Links& links, NodeTeam* team) {
  TUTTI_ASSIGN_OR_RETURN(const auto nodes, Nodes(links.connector().table()));
  const auto by_size = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const auto [least, most] = std::minmax_element(nodes.begin(), nodes.end(), by_size);
  if (nodes.size() == 1 || most->size() == 1) return nullptr;
  const int lanes = static_cast<int>(least->size());
  const int local_rank = team == nullptr ? 0 : team->rank();
  std::optional<Links> lane;
  if (local_rank < lanes) {
    std::vector<int> members;
    for (const auto& node : nodes) members.push_back(node[local_rank]);
    lane = links.Subset(std::move(members));
  }
  return std::unique_ptr<TwoLevel>(new TwoLevel(team, std::move(lane), lanes));
}

absl::Status TwoLevel::AllReduce(std::byte* data, size_t count, const Reduction& reduction,
                                 base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(ReachLane(deadline));
  const size_t bytes = count * SizeOf(reduction.type);
  return bytes <= kSmallMessage ? Small({data, bytes}, reduction, deadline)
                                : Large(data, count, reduction, deadline);
}

// The links of a lane are not among the group's first ones. In the order of the ranks' numbers in
// the group (see Connector), which is not always that of the lane.
absl::Status TwoLevel::ReachLane(base::Deadline deadline) {
  if (reached_ || !lane_.has_value()) return absl::OkStatus();
  std::vector<int> peers;
  for (int peer = 0; peer < lane_->size(); ++peer) {
    if (NeedsLink(lane_->rank(), peer, lane_->size())) peers.push_back(peer);
  }
  std::sort(peers.begin(), peers.end(),
            [&](int a, int b) { return lane_->Number(a) < lane_->Number(b); });
  for (const int peer : peers) TUTTI_RETURN_IF_ERROR(lane_->Connect(peer, deadline));
  reached_ = true;
  return absl::OkStatus();
}

absl::Status TwoLevel::Small(std::span<std::byte> data, const Reduction& reduction,
                             base::Deadline deadline) {
  const size_t count = data.size() / SizeOf(reduction.type);
  if (team_ != nullptr) {
    TUTTI_RETURN_IF_ERROR(NodeAllReduce(*team_, data.data(), count, reduction, false, deadline));
  }
  if (local_rank() == 0) {
    TUTTI_RETURN_IF_ERROR(comm::AllReduce(*lane_, data.data(), count, reduction, deadline));
  }
  return team_ == nullptr ? absl::OkStatus() : NodeBroadcast(*team_, data, 0, deadline);
}

absl::Status TwoLevel::Large(std::byte* data, size_t count, const Reduction& reduction,
                             base::Deadline deadline) {
  const size_t width = SizeOf(reduction.type);
  const Chunks chunks = ChunksOf(data, count, width, lanes_, local_size());
  const std::span<std::byte> own = chunks[local_rank()];
  if (team_ != nullptr) {
    TUTTI_RETURN_IF_ERROR(
        NodeReduceScatter(*team_, chunks, own.data(), reduction, false, deadline));
  }
  if (!own.empty()) {
    TUTTI_RETURN_IF_ERROR(
        comm::AllReduce(*lane_, own.data(), own.size() / width, reduction, deadline));
  }
  return team_ == nullptr ? absl::OkStatus() : NodeAllGather(*team_, chunks, deadline);
}

}  // namespace tutti::comm
