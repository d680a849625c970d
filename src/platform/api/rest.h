// Lists the routes of the users' calls (docs/formats/rest.md).
#pragma once

#include <functional>
#include <vector>

#include "platform/api/routing/call_counters.h"
#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

// `http`: how the interface is used, for monitors; null: nothing is known.
std::vector<Route> UserRoutes(service::Service* service,
                              const std::function<HttpUse()>& http = nullptr);

}  // namespace tutti::api
