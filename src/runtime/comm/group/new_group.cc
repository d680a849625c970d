#include "runtime/comm/group/new_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "runtime/comm/collective/call.h"
#include "runtime/comm/group/join.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

absl::StatusOr<std::vector<int>> MembersOf(std::span<const int> ranks, int rank, int size) {
  std::vector<int> members(ranks.begin(), ranks.end());
  std::sort(members.begin(), members.end());
  for (const int member : members) TUTTI_RETURN_IF_ERROR(CheckRank("rank", member, size));
  const auto twice = std::adjacent_find(members.begin(), members.end());
  if (twice != members.end()) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", *twice, " twice in a new group"));
  }
  if (!std::binary_search(members.begin(), members.end(), rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, " forms a group that it is not in (of ", absl::StrJoin(members, ", "), ")"));
  }
  return members;
}

NewGroupPlan::NewGroupPlan(std::vector<int> members, int rank)
    : members_(std::move(members)), rank_(rank) {}

std::span<const int> NewGroupPlan::Partners() const {
  const std::span<const int> members(members_);
  return IsFirst() ? members.subspan(1) : members.first(1);
}

Invitation NewGroupPlan::Own(const std::string& address) {
  if (IsFirst()) {
    absl::StatusOr<base::UniqueFd> listener = Listen({address, 0});
    if (listener.ok()) listener_ = *std::move(listener);
    port_ = listener_.valid() ? PortOf(listener_.get()).value_or(0) : 0;
  }
  const std::vector<size_t> hashed(members_.begin(), members_.end());
  return {HashOf(hashed), static_cast<uint64_t>(port_)};
}

absl::Status NewGroupPlan::Accept(int partner, const Invitation& invitation) {
  const std::vector<size_t> hashed(members_.begin(), members_.end());
  if (invitation.members != HashOf(hashed)) {
    return absl::FailedPreconditionError(absl::StrCat("rank ", rank_, " forms a group of ranks ",
                                                      absl::StrJoin(members_, ", "), ", rank ",
                                                      partner, " one of others"));
  }
  if (!IsFirst()) port_ = static_cast<int>(std::min<uint64_t>(invitation.port, 65535));
  if (port_ > 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("rank ", members_.front(), " found no port to listen on for a new group"));
}

absl::StatusOr<std::unique_ptr<Communicator>> NewGroupPlan::Form(const GroupOptions& parent,
                                                                 const Table& table,
                                                                 const std::vector<int>& whole,
                                                                 base::Deadline deadline,
                                                                 int interrupt) {
  GroupOptions options = parent;
  const auto own = std::find(members_.begin(), members_.end(), rank_);
  options.rank = static_cast<int>(own - members_.begin());
  options.size = static_cast<int>(members_.size());
  options.address = table.ranks[rank_].address;
  options.master_address = table.ranks[members_.front()].address;
  options.master_port = port_;
  options.connect_timeout = deadline.Remaining();
  std::vector<int> numbers;
  for (const int member : members_) numbers.push_back(whole.empty() ? member : whole[member]);
  const std::string name = absl::StrCat("new group of ranks ", absl::StrJoin(numbers, ", "));
  auto group = Join(options, std::move(listener_), std::move(numbers), interrupt);
  if (!group.ok()) return base::Annotate(group.status(), name);
  return group;
}

}  // namespace tutti::comm
