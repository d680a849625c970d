// Finds where the service listens, and the token and certificate by which client and service know
// each other.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "spec/types/service_endpoint.h"

namespace tutti::client {

// Returns --home, else TUTTI_HOME, else XDG_DATA_HOME/tutti, else ~/.local/share/tutti. Absolute.
std::filesystem::path HomeFolder(const std::string& flag);

// Reads TUTTI_ADDRESS, TUTTI_TOKEN and TUTTI_CERTIFICATE (a file) where they are set, the rest from
// HOME/service.json, which a running service writes. Its token goes nowhere but to the holder of
// its certificate, or without one (--no-tls) to its address. Unavailable, with what to do, when
// there is no service (NeverThere of a home that has had none); InvalidArgument where one that is
// known by a certificate is to be spoken to without TLS, or where its token would go to another
// address.
absl::StatusOr<spec::Endpoint> FindService(const std::filesystem::path& home);

}  // namespace tutti::client
