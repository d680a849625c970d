// Decides whether a job is begun again, and what its next attempt takes over. A job of which a node
// was lost goes back to Queued as long as its retries last, with what it had written: its logs go
// on behind what they hold, and the next attempt finds the outputs of the one before, from whose
// checkpoints it can resume. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/service/jobs/live_job.h"

namespace tutti::service {

std::string AllocationOf(const store::Job& job, int attempt = 1);
std::string AllocationOf(const LiveJob& job);  // of its present attempt

// Returns whether a job that ends with that step is begun again. Decided here alone.
bool MayBeginAgain(const LiveJob& job, const Step& end);
// Returns whether the processes that failed in the present attempt did so within seconds of its
// beginning: to run that again elsewhere costs little.
bool FailedAtOnce(const LiveJob& job);
// Returns whether a job that is Finalizing might be, as far as its cause tells: its last step is
// not known yet.
bool MightBeginAgain(const LiveJob& job);

// Returns the placement whose outputs the attempt after the present one takes over.
std::optional<Placement> FormerAfter(const LiveJob& job);

// Returns the nodes that the attempt after the present one had better not have.
std::vector<std::string> AvoidAfter(const LiveJob& job);

// Returns LiveJob::begun_free after an attempt that ends so.
int FreeAfter(const LiveJob& job, const Step& end);

// Returns the step back to Queued from an attempt that ends so.
Step StepToNextAttempt(const LiveJob& job, const Step& end);

// Does in memory what that step says: the job no longer has its nodes. `now` is since boot.
void BeginNextAttempt(LiveJob& job, const Step& end, absl::Duration now);

}  // namespace tutti::service
