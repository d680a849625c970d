// Judges the clocks of clusters' nodes by what their launchers say of the time. A node whose clock
// is wrong is ill: jobs of this service avoid it, and what runs there goes on. Nodes that agree
// with one another and not with the service show that it is the service's clock that is wrong, and
// so does a launcher for which the clocks agreed before and whose own has not been set since.
#pragma once

#include "absl/time/time.h"
#include "platform/service/jobs/job_table.h"

namespace tutti::service {

// Notes a report that the launcher of the job's node sent at that time by its node's clock: the
// node gets a cordon of state.cluster_cordons, keeps or loses the one that it has for its clock.
// One that is wrong and no reason for a cordon is a problem of the service. Does nothing for nodes
// of this machine, which have its clock.
void NoteClock(SharedState& state, const JobTable& table, const LiveJob& job, int node,
               absl::Time sent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

}  // namespace tutti::service
