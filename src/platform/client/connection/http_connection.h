// Makes connections to the service by HTTP.
#pragma once

#include <filesystem>

#include "platform/client/connection/connection.h"

namespace tutti::client {

// Returns what makes connections to the service that FindService(home) names at the time of the
// first request.
Connect ConnectTo(const std::filesystem::path& home);

}  // namespace tutti::client
