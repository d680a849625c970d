// Tells whether a secret may be sent to an address, as to who gives tokens for it. Pure functions;
// thread-safe.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::base {

// Returns whether it is a URL to which a secret may go: https and a host, with or without a port,
// and a path, as of who stands between; on this machine itself (127.0.0.1, localhost, [::1]) http
// will do. The path has no character that would have to be encoded, and no empty segment, "." or
// "..".
bool IsSecureUrl(absl::string_view url);

}  // namespace tutti::base
