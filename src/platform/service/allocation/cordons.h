// Reads, adds and removes cordons: a cordoned node of this machine gets no jobs until a user says
// otherwise, however often the service is started. What runs on them goes on.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

// Reads the cordons from the store, at the service's start.
absl::Status ReadCordons(SharedState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// Do what Service::Cordon and Service::Uncordon do.
absl::Status AddCordon(SharedState& state, absl::string_view compute, absl::string_view node,
                       absl::string_view reason) ABSL_LOCKS_EXCLUDED(service_lock);
absl::Status RemoveCordon(SharedState& state, absl::string_view compute, absl::string_view node)
    ABSL_LOCKS_EXCLUDED(service_lock);

// Checks a node: OK if `node` is an existing node of this machine; else an error that says what to
// do.
absl::Status CheckIsOurs(SharedState& state, absl::string_view compute, absl::string_view node)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// Cordons the node, which is not cordoned, in memory: that holds at once.
void NoteCordon(SharedState& state, const store::Cordon& cordon)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
// Writes a cordon of the service's own that was noted, unless it was taken off meanwhile; so long
// as the disk does not answer, which may be the reason for the cordon. One that cannot be written,
// as on a full disk, holds as long as this service runs.
void WriteCordon(SharedState& state, const store::Cordon& cordon) ABSL_LOCKS_EXCLUDED(service_lock);
// Removes the node's cordon; does nothing if the node is not cordoned by that author.
void LiftCordon(SharedState& state, const std::string& node, store::CordonAuthor author)
    ABSL_LOCKS_EXCLUDED(service_lock);

// Has jobs of this service avoid a cluster's node for ClusterCordons::kLimit from now on. Logs a
// cordon that is new.
void AddClusterCordon(SharedState& state, const std::string& compute, const std::string& node,
                      const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

}  // namespace tutti::service
