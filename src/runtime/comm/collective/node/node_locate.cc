// How the ranks of a team learn where each other's data lie.
#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "runtime/comm/collective/node/node_team.h"

namespace tutti::comm {

struct NodeTeam::Notice {
  BufferLocation where;
  uint64_t all_mapped = 0;
};

NodeTeam::Notice NodeTeam::ReadNotice(int rank) const {
  Notice notice;
  std::memcpy(&notice, SlotOf(rank) - kSlotHeader, sizeof(notice));
  return notice;
}

void NodeTeam::WriteNotice(const Notice& notice) {
  std::memcpy(slot() - kSlotHeader, &notice, sizeof(notice));
}

absl::StatusOr<std::span<std::byte* const>> NodeTeam::Locate(const std::byte* data,
                                                             std::span<const size_t> bytes,
                                                             base::Deadline deadline) {
  buffers_.Tidy();
  Notice own;
  if (bytes[rank_] > 0) own.where = buffers_.Find(data, bytes[rank_]);
  WriteNotice(own);
  TUTTI_RETURN_IF_ERROR(NextPhase(deadline));
  TUTTI_ASSIGN_OR_RETURN(const bool mapped, MapAll(data, bytes));
  TUTTI_RETURN_IF_ERROR(AgreeOnNew(mapped, deadline));
  return std::span<std::byte* const>(reached_);
}

absl::StatusOr<bool> NodeTeam::MapAll(const std::byte* data, std::span<const size_t> bytes) {
  locations_.clear();
  bool mapped = true;
  for (int rank = 0; rank < size(); ++rank) {
    const BufferLocation where =
        locations_.emplace_back(bytes[rank] > 0 ? ReadNotice(rank).where : BufferLocation());
    reached_[rank] = nullptr;
    if (where.buffer == 0) continue;
    if (rank == rank_) {
      reached_[rank] = const_cast<std::byte*>(data);
      continue;
    }
    const auto place = buffers_.Map(rank, where, bytes[rank]);
    if (place.ok()) {
      reached_[rank] = *place;
    } else if (absl::IsNotFound(place.status()) && where.is_new != 0) {
      mapped = false;
    } else {
      return ReportFailure(rank, Reason::kClosed);
    }
  }
  return mapped;
}

absl::Status NodeTeam::AgreeOnNew(bool mapped, base::Deadline deadline) {
  const auto is_new = [](const BufferLocation& where) { return where.is_new != 0; };
  if (std::none_of(locations_.begin(), locations_.end(), is_new)) return absl::OkStatus();
  WriteNotice({{}, mapped});
  TUTTI_RETURN_IF_ERROR(NextPhase(deadline));
  bool by_all = true;
  for (int rank = 0; rank < size(); ++rank) by_all = by_all && ReadNotice(rank).all_mapped != 0;
  if (is_new(locations_[rank_])) buffers_.SetReached(locations_[rank_], by_all);
  for (int rank = 0; rank < size() && !by_all; ++rank) {
    if (is_new(locations_[rank])) reached_[rank] = nullptr;
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
