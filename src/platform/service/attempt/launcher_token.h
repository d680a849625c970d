// Makes the bearer token by which the launchers of an allocation prove whom they speak for; it
// opens the calls of that allocation and of no other. Nobody has to keep it, since it follows from
// the service's key.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::service {

// Returns the HMAC-SHA-256 of the allocation's id, hexadecimal. "" without a key, which opens
// nothing.
std::string LauncherToken(absl::string_view key, absl::string_view allocation);

}  // namespace tutti::service
