// Finds the one job whose id the user typed in full or in part.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

// Returns the one of `ids` that `name` is, or begins as no other does. NotFound, with the nearest
// id that exists; InvalidArgument names those that it could be.
absl::StatusOr<std::string> ChooseJob(absl::string_view name, const std::vector<std::string>& ids);

// Does the same among the jobs of the service (the newest thousand for beginnings); "last" is the
// newest, unless a job is called so. In a child's name "PARENT.STEP", the parent's name may be
// a beginning, or "last".
absl::StatusOr<std::string> ResolveJob(ServiceClient& service, const std::string& name);

}  // namespace tutti::client
