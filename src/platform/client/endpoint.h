// Where the service is and what proves that we may talk to it.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace tutti::client {

struct Endpoint {
  std::string address;  // "http://127.0.0.1:7300"
  std::string token;
};

// --home, else TUTTI_HOME, else XDG_DATA_HOME/tutti, else ~/.local/share/tutti. Absolute.
std::filesystem::path HomeFolder(const std::string& flag);

// TUTTI_ADDRESS and TUTTI_TOKEN where they are set, the rest from HOME/service.json, which a
// running service writes. Unavailable, with what to do, when there is none.
absl::StatusOr<Endpoint> FindService(const std::filesystem::path& home);

}  // namespace tutti::client
