// Reads which NFS server is meant. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

inline constexpr int kNfsPort = 2049;

struct NfsAuthority {
  std::string host;  // a name, or a numeric IPv4 address
  int port = kNfsPort;
};

// Reads "HOST" or "HOST:PORT"; nullopt if it is neither.
std::optional<NfsAuthority> ParseNfsAuthority(absl::string_view text);
// Returns the endpoint of a place of that server: "nfs://HOST", with ":PORT" unless that is NFS's
// own; nullopt if `authority` is no server.
std::optional<std::string> NfsEndpoint(absl::string_view authority);

}  // namespace tutti::spec
