// Rendezvous brings the ranks of a group together: rank 0 listens on master_address:master_port,
// the others come to it (again and again until connect_timeout, since rank 0 may start later), both
// prove that they know the token, each says who it is, and when all have come rank 0 tells
// everybody about everybody. The connections stay: they are the star over which a Membership
// listens.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

struct RendezvousResult {
  Table table;
  // Rank 0: the connection to rank r at r (none at 0). Others: the one to rank 0 at 0.
  std::vector<base::UniqueFd> controls;
};

// Errors, the same ones on the ranks that came:
//   DeadlineExceeded    names the ranks that did not come within connect_timeout
//   PermissionDenied    rank 0 does not know this rank's token
//   FailedPrecondition  rank 0 runs another version of the protocol; the port is taken
//   InvalidArgument     two ranks with the same number, or with different ideas of the group's size
//   Cancelled           `interrupt` has become readable
//
// Rank 0 may have begun to listen already.
absl::StatusOr<RendezvousResult> Rendezvous(const GroupOptions& options, const Hello& self,
                                            base::UniqueFd listener = base::UniqueFd(),
                                            int interrupt = -1);

}  // namespace tutti::comm
