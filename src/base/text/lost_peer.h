// Tells whether a process's last words speak of another process that went away: then its failure is
// a consequence, not a cause. Pure functions.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::base {

// A launcher whose connection to another node's has ended begins its message with this; the node's
// name follows.
inline constexpr absl::string_view kLostLauncher = "lost connection to the launcher of node ";

// Returns whether `last_error` speaks of a peer that went away rather than of a fault of its own.
bool SpeaksOfALostPeer(absl::string_view last_error);

// Returns the rank that `last_error` blames ("rank 3 left the group"), or -1.
int BlamedRank(absl::string_view last_error);

}  // namespace tutti::base
