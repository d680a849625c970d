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

// OK if it is a node of this machine that is there; else an error that says what to do.
absl::Status CheckIsOurs(SharedState& state, absl::string_view compute, absl::string_view node)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// By the service itself: nothing if the node is cordoned already. What cannot be written, as on a
// disk that is full, holds as long as this service.
void SetCordon(SharedState& state, const store::Cordon& cordon) ABSL_LOCKS_EXCLUDED(service_lock);
// Nothing if it is not cordoned by that author.
void LiftCordon(SharedState& state, const std::string& node, store::CordonAuthor author)
    ABSL_LOCKS_EXCLUDED(service_lock);

}  // namespace tutti::service
