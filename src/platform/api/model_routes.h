// Lists the routes of the model registry: /v1/models and /v1/model-files (docs/models.md).
#pragma once

#include <vector>

#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

std::vector<Route> ModelRoutes(service::Service* service);

}  // namespace tutti::api
