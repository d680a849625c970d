// Decides what follows when a launcher of a placed job is not heard of: the node is given up, or
// the service waits for the cluster to say how it ended.
#pragma once

#include "platform/service/allocation/effects.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

// Notes that the launcher of that node was heard of, now.
void NoteWord(const SharedState& state, LiveJob& live, int node)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
// Notes besides that what it said was taken, so that others could be heard of as well: who brings
// what several launchers say waits where the service has no room for what one of them says.
void NoteTaken(SharedState& state, LiveJob& live, int node)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// Notes that the loop looks at the jobs now. Call it before each round of GiveUpOnTheSilent.
void NoteLook(SharedState& state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// Gives up the nodes whose launcher has not been heard of for too long, or was told to stop and has
// not ended.
void GiveUpOnTheSilent(const SharedState& state, LiveJob& live, Effects& effects)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

// Returns whether a cluster has yet to say how it ended a job whose launchers have ended.
bool VerdictMayCome(const SharedState& state, const LiveJob& job);

}  // namespace tutti::service
