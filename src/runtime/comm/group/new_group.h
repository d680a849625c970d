// NewGroupPlan forms a group of some ranks of another one. They find each other over the links that
// they have: the first of them opens a listener on a free port of its own address and tells the
// others where it is, each over its link with it; then they meet and connect as any group does
// (join.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

// Returns `ranks` in ascending order. InvalidArgument if one is no rank of a group of `size` or
// comes twice, or `rank` is not among them.
absl::StatusOr<std::vector<int>> MembersOf(std::span<const int> ranks, int rank, int size);

// What the first rank and each other one tell each other.
struct Invitation {
  uint64_t members = 0;  // a hash: both must mean the same group
  uint64_t port = 0;     // the first rank's; 0: it could not listen
};

// The steps of one rank; the caller brings the invitations across.
class NewGroupPlan {
 public:
  NewGroupPlan(std::vector<int> members, int rank);

  bool IsFirst() const { return members_.front() == rank_; }
  // Lists the ranks with whom to exchange invitations, in this order.
  std::span<const int> Partners() const;
  // Opens the first rank's listener at its `address`.
  Invitation Own(const std::string& address);
  // Accepts an invitation; FailedPrecondition when `partner` forms another group, Unavailable when
  // it could not listen.
  absl::Status Accept(int partner, const Invitation& invitation);

  // Forms the group; `parent`: the options of this rank in the group whose table is `table`;
  // `whole` and `interrupt` as in Join.
  absl::StatusOr<std::unique_ptr<Communicator>> Form(const GroupOptions& parent, const Table& table,
                                                     const std::vector<int>& whole,
                                                     base::Deadline deadline, int interrupt);

 private:
  const std::vector<int> members_;
  const int rank_;
  base::UniqueFd listener_;
  int port_ = 0;
};

}  // namespace tutti::comm
