// The collectives that only copy.
#include <algorithm>
#include <vector>

#include "base/machine/copy_bytes.h"
#include "base/status.h"
#include "runtime/comm/collective/node/copy_to_slot.h"
#include "runtime/comm/collective/node/node_collectives.h"

namespace tutti::comm {
namespace {

constexpr size_t kSlot = NodeTeam::kSlotBytes;
// Up to here it is not worth a phase to ask where data lie.
constexpr size_t kAlwaysStaged = 64 << 10;

std::span<std::byte> Block(std::span<std::byte> data, size_t t) {
  const size_t begin = std::min(data.size(), t * kSlot);
  return data.subspan(begin, std::min(kSlot, data.size() - begin));
}

size_t Blocks(size_t bytes) { return (bytes + kSlot - 1) / kSlot; }

absl::Status StagedBroadcast(NodeTeam& team, std::span<std::byte> data, int root,
                             base::Deadline deadline) {
  const size_t blocks = Blocks(data.size());
  for (size_t phase = 0; phase <= blocks; ++phase) {
    if (phase > 0) TUTTI_RETURN_IF_ERROR(team.NextPhase(deadline));
    if (team.rank() == root) {
      const auto block = Block(data, phase);
      CopyToSlot(team.slot(), block);
    } else if (phase > 0) {
      const auto block = Block(data, phase - 1);
      base::CopyBytes(block.data(), team.SlotOf(root), block.size());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NodeBroadcast(NodeTeam& team, std::span<std::byte> data, int root,
                           base::Deadline deadline) {
  if (data.size() <= kAlwaysStaged) return StagedBroadcast(team, data, root, deadline);
  std::vector<size_t> sizes(team.size());
  sizes[root] = data.size();
  TUTTI_ASSIGN_OR_RETURN(const auto places, team.Locate(data.data(), sizes, deadline));
  if (places[root] == nullptr) return StagedBroadcast(team, data, root, deadline);
  if (team.rank() != root) base::CopyBytes(data.data(), places[root], data.size());
  return team.NextPhase(deadline);
}

absl::Status NodeAllGather(NodeTeam& team, const Chunks& output, base::Deadline deadline) {
  const int size = team.size();
  std::vector<std::byte*> places(size);
  bool direct = false;
  if (output.All().size() > kAlwaysStaged) {
    std::vector<size_t> sizes(size);
    for (int rank = 0; rank < size; ++rank) sizes[rank] = output[rank].size();
    TUTTI_ASSIGN_OR_RETURN(const auto found,
                           team.Locate(output[team.rank()].data(), sizes, deadline));
    places.assign(found.begin(), found.end());
  }
  size_t blocks = 0;
  for (int rank = 0; rank < size; ++rank) {
    if (places[rank] == nullptr) {
      blocks = std::max(blocks, Blocks(output[rank].size()));
      continue;
    }
    direct = true;
    if (rank == team.rank()) continue;
    base::CopyBytes(output[rank].data(), places[rank], output[rank].size());
  }
  for (size_t phase = 0; phase <= blocks; ++phase) {
    if (phase > 0) TUTTI_RETURN_IF_ERROR(team.NextPhase(deadline));
    for (int rank = 0; rank < size; ++rank) {
      if (places[rank] != nullptr) continue;
      if (rank == team.rank()) {
        const auto block = Block(output[rank], phase);
        CopyToSlot(team.slot(), block);
      } else if (phase > 0) {
        const auto block = Block(output[rank], phase - 1);
        base::CopyBytes(block.data(), team.SlotOf(rank), block.size());
      }
    }
  }
  // What others read of this rank's own memory they have read when the phase has ended.
  return direct ? team.NextPhase(deadline) : absl::OkStatus();
}

absl::Status NodeBarrier(NodeTeam& team, base::Deadline deadline) {
  return team.NextPhase(deadline);
}

}  // namespace tutti::comm
