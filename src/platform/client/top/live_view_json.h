// Writes a view as a JSON document, for programs (docs/monitoring/top.md).
#pragma once

#include <string>

#include "platform/client/top/live_view.h"

namespace tutti::client {

// Returns all nodes and jobs, each with what it uses; or of one job its nodes and their ranks.
std::string LiveViewJson(const LiveView& view);

}  // namespace tutti::client
