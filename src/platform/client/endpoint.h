// Where the service is and what proves that we may talk to it.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "spec/endpoint.h"

namespace tutti::client {

// --home, else TUTTI_HOME, else XDG_DATA_HOME/tutti, else ~/.local/share/tutti. Absolute.
std::filesystem::path HomeFolder(const std::string& flag);

// TUTTI_ADDRESS and TUTTI_TOKEN where they are set, the rest from HOME/service.json, which a
// running service writes. The service at TUTTI_ADDRESS is known by the certificate in the file that
// TUTTI_CERTIFICATE names. Unavailable, with what to do, when there is none.
absl::StatusOr<spec::Endpoint> FindService(const std::filesystem::path& home);

}  // namespace tutti::client
