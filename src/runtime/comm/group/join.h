// Forms a group: the ranks meet (rendezvous/), connect (transport/) and then are a Group.
// JoinGroup, new groups of the ranks of one that is, and groups that form anew all do so.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/membership/membership.h"
#include "runtime/comm/rendezvous/rendezvous.h"
#include "runtime/comm/transport/connect/connector.h"

namespace tutti::comm {

// Joins; `listener`: on rank 0, where the others come to; none to listen at the options' master
// address. `whole[r]`: the number of rank r in the group that this one is a part of; empty if of
// none. `interrupt`: Cancelled when it becomes readable before all have met; -1 for none.
absl::StatusOr<std::unique_ptr<Communicator>> Join(const GroupOptions& options,
                                                   base::UniqueFd listener, std::vector<int> whole,
                                                   int interrupt = -1);

// A group of the ranks that have met.
struct Formed {
  std::unique_ptr<Communicator> group;
  Membership* membership = nullptr;  // the group's; none in a group of one
};
absl::StatusOr<Formed> Form(const GroupOptions& options, RendezvousResult rendezvous,
                            Listeners listeners, std::vector<int> whole);

absl::Status Validate(const GroupOptions& options);

}  // namespace tutti::comm
