// Lists the routes of the launchers' calls (docs/formats/launcher-calls.md).
#pragma once

#include <vector>

#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

std::vector<Route> LauncherRoutes(service::Service* service);

}  // namespace tutti::api
