// Joins and re-forms groups whose members change: after a loss, or to let newcomers in, the ranks
// that are left form the next generation of the group. docs/decisions/015-re-forming.md tells the
// rule; rendezvous/membership/reform_agreement.h has the protocol and the proof.
//
//   for (;;) {
//     const absl::Status step = Step(*group);
//     if (step.ok() && !agreed_that_newcomers_wait) continue;
//     auto next = group->Reform({.min_ranks = 2, .member_timeout = absl::Seconds(30)});
//     if (!next.ok()) return next.status();
//     group = *std::move(next);
//     SendStateFromRankZero(*group);
//   }
//
// Opt in with GroupOptions::elastic on every rank.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "runtime/comm/group_options.h"

namespace tutti::comm {

class Communicator;

struct ReformOptions {
  int min_ranks = 1;  // fewer ranks than these, newcomers included, are an error
  // Newcomers beyond these go on waiting; survivors always belong to the group.
  int max_ranks = 1 << 16;
  // How long a member that is not known to be lost is waited for. All members call Reform, each
  // after its own error or at the same place of its program: give the slowest the time for that.
  absl::Duration member_timeout = absl::Seconds(30);
  // How long to wait for newcomers beyond those that wait already, while there are less than
  // `max_ranks`.
  absl::Duration newcomer_timeout = absl::ZeroDuration();
};

// Comes to a running elastic group as a newcomer: finds a member by options.group_file,
// options.members or the master's address, is led to rank 0, and waits until the group calls Reform
// and takes it in; then it is a member as any other, whose rank is above those of the survivors.
// options.rank and options.size are not used. DeadlineExceeded says how far it came;
// PermissionDenied that the token is wrong.
absl::StatusOr<std::unique_ptr<Communicator>> JoinRunning(const GroupOptions& options,
                                                          base::Deadline deadline);

}  // namespace tutti::comm
