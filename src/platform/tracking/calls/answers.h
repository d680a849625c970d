// Writes answers as MLflow's clients read them: errors with MLflow's codes, and the JSON of what is
// kept. Internal to platform/tracking.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/message.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

// {"error_code": …, "message": …}, by the status's code: NotFound RESOURCE_DOES_NOT_EXIST,
// AlreadyExists RESOURCE_ALREADY_EXISTS, PermissionDenied PERMISSION_DENIED, InvalidArgument
// INVALID_PARAMETER_VALUE, Unimplemented NOT_IMPLEMENTED, Unavailable TEMPORARILY_UNAVAILABLE,
// ResourceExhausted RESOURCE_EXHAUSTED (507: the client says it at once, where it would try 429
// again for minutes), others INTERNAL_ERROR.
http::Response ErrorAnswer(const absl::Status& status);
http::Response Answer(const nlohmann::json& json);
// Returns an empty object, unless `status` is an error.
absl::StatusOr<http::Response> Answer(const absl::Status& status);

nlohmann::json JsonOf(const Experiment& experiment);
nlohmann::json JsonOf(const RunInfo& run);
nlohmann::json JsonOf(const Run& run);
nlohmann::json JsonOf(const Model& model);
absl::string_view NameOf(RunStatus status);

// Appends a point's object, with `run` if it is not empty. `key` is JSON text already.
void AppendPoint(absl::string_view key, const Point& point, absl::string_view run,
                 std::string& text);
std::string JsonText(absl::string_view text);

}  // namespace tutti::tracking
