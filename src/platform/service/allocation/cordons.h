// Nodes of this machine that get no jobs until a user says otherwise, however often the service is
// started. What runs on them goes on.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

// As the store knows them, at the service's start.
absl::Status ReadCordons(SharedState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// As Service::Cordon and Service::Uncordon.
absl::Status AddCordon(SharedState& state, absl::string_view compute, absl::string_view node,
                       absl::string_view reason) ABSL_LOCKS_EXCLUDED(service_lock);
absl::Status RemoveCordon(SharedState& state, absl::string_view compute, absl::string_view node)
    ABSL_LOCKS_EXCLUDED(service_lock);

}  // namespace tutti::service
