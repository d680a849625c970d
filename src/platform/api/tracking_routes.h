#pragma once

#include <vector>

#include "platform/api/routing/router.h"
#include "platform/tracking/tracking_server.h"

namespace tutti::api {

// The paths of MLflow's tracking server, for users and for jobs by the tokens of their runs. They
// are MLflow's interface, so openapi.json does not have them. `tracking` outlives them.
std::vector<Route> TrackingRoutes(tracking::TrackingServer* tracking);

}  // namespace tutti::api
