// Makes the bearer token by which the launchers of an allocation prove whom they speak for; it
// opens the calls of that allocation and of no other. Nobody has to keep it, since it follows from
// the service's key. So does that of monitors.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::service {

// Returns the HMAC-SHA-256 of the allocation's id, hexadecimal. "" without a key, which opens
// nothing.
std::string LauncherToken(absl::string_view key, absl::string_view allocation);

// Returns, made likewise, the token by which a monitor reads how the service does, and nothing
// else.
std::string MetricsToken(absl::string_view key);

// Returns the token by which a job speaks to MLflow's tracking for its own run: the run's id, a
// point, and a code made likewise. "" without a key.
std::string RunToken(absl::string_view key, absl::string_view run);
// Returns the run of such a token; "" if it is none.
std::string RunOfToken(absl::string_view key, absl::string_view token);

}  // namespace tutti::service
