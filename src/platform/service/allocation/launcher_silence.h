// Decides what follows when a launcher of a placed job is not heard of: the node is given up, or
// the service waits for the cluster to say how it ended.
#pragma once

#include "platform/service/allocation/effects.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

// Gives up the nodes whose launcher has not been heard of for too long, or was told to stop and has
// not ended.
void GiveUpOnTheSilent(const SharedState& state, LiveJob& live, Effects& effects);

// Returns whether a cluster has yet to say how it ended a job whose launchers have ended.
bool VerdictMayCome(const SharedState& state, const LiveJob& job);

}  // namespace tutti::service
