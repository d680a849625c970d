// Tells which errors of a call mean that the service is away, and how long a command waits for it
// to come back.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::client {

// After so long without the service a command that waits for it gives up.
inline constexpr absl::Duration kGiveUpAfter = absl::Minutes(10);

// Returns whether the same call can succeed later: the service was gone, busy, or being restarted.
// So is a token that is refused: another service may have taken the port of one that has ended.
bool MayRecover(const absl::Status& status);

// Marks `status`, of a service that is away: nothing says that there has ever been one. Who has
// spoken to it waits all the same, and nobody else.
absl::Status NeverThere(absl::Status status);
bool WasNeverThere(const absl::Status& status);

// Returns what is said after `waited` without the service.
absl::Status DidNotComeBack(const absl::Status& error, absl::Duration waited);

}  // namespace tutti::client
