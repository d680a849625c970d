// Lists the routes of the users' calls (docs/formats/rest.md).
#pragma once

#include <vector>

#include "platform/api/router.h"
#include "platform/service/service.h"

namespace tutti::api {

std::vector<Route> UserRoutes(service::Service* service);

}  // namespace tutti::api
