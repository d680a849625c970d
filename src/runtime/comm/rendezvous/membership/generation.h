// Generation is what a rank of an elastic group brings from one generation into the next. Its
// Communicator owns it; re-forming moves it on, and the Communicator of the next generation gets
// it.
//
// Thread-compatible, as the Communicator is.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/elastic.h"
#include "runtime/comm/rendezvous/membership/membership.h"
#include "runtime/comm/rendezvous/membership/reform_agreement.h"
#include "runtime/comm/rendezvous/membership/rejoin_listener.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

struct Generation {
  GroupOptions options;                      // with this rank's place in the generation
  Table table;                               // the generation
  std::unique_ptr<RejoinListener> listener;  // none once the next generation has it
  Membership* membership =
      nullptr;  // the generation's; none if it did not come together, or is one rank
  std::optional<ReformAgreement>
      agreement;  // begun by the first Reform; a promise outlives a failure
};

// What follows a generation, and the connections of its star: empty when it has to re-form at once,
// because the rank 0 that proposed it is gone or members of it are.
struct ReformOutcome {
  Table table;
  std::vector<base::UniqueFd> controls;
};

// Plays this rank's part in the agreement: goes to leaders or leads. `self` is this rank as it can
// be reached in the next generation. Errors: Unavailable, too few votes; FailedPrecondition, too
// few ranks; DeadlineExceeded, a leader that lives did not call Reform.
absl::StatusOr<ReformOutcome> AgreeOnSuccessor(Generation& generation, const ReformOptions& terms,
                                               const Hello& self);

// Returns the rank of `self` in a table; none when it is not in it.
std::optional<int> RankIn(const Table& table, const Hello& self);

// Tells which ranks run on the host of `rank`. Within a host nothing that has been delivered is
// lost on the way: an end of a connection comes after it, be it a reset.
std::vector<bool> WithinHost(const Table& table, int rank);

// Returns how long a rank that lives may leave another without a word while they re-form.
absl::Duration LongestSilence(const GroupOptions& options);

}  // namespace tutti::comm
