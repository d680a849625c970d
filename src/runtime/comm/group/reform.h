// Takes a rank from one generation of an elastic group to the next.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/membership/generation.h"
#include "runtime/comm/transport/connect/connector.h"

namespace tutti::comm {

// Joins the first generation.
absl::StatusOr<std::unique_ptr<Communicator>> JoinElastic(GroupOptions options);

// Who a rank is in the next generation, and where it listens for that.
struct RejoinIdentity {
  Hello self;
  Listeners listeners;
};
// Opens the listeners for the next generation.
absl::StatusOr<RejoinIdentity> PrepareRejoin(const GroupOptions& options,
                                             const RejoinListener& listener);

// Makes this rank's Communicator from a table that has been decided: connects, or re-forms again
// as often as members are lost meanwhile. `line` moves on to every generation that is decided, and
// into the Communicator at last; after an error it stands where the next attempt has to begin.
absl::StatusOr<std::unique_ptr<Communicator>> BecomeMember(Generation& generation,
                                                           ReformOutcome outcome,
                                                           RejoinIdentity identity,
                                                           const ReformOptions& terms);

}  // namespace tutti::comm
