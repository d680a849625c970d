// Holds the OpenAPI document of the REST interface (openapi.json), as it is served.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::api {

absl::string_view OpenApiText();

}  // namespace tutti::api
