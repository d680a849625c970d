// Jobs that are begun again. A job of which a node was lost goes back to Queued as long as its
// retries last, with what it had written: its logs go on behind what they hold, and the next
// attempt finds the outputs of the one before, from whose checkpoints it can resume. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/service/jobs/live_job.h"

namespace tutti::service {

std::string AllocationOf(const store::Job& job, int attempt = 1);
std::string AllocationOf(const LiveJob& job);  // of its present attempt

bool MayBeginAgain(const LiveJob& job, const Step& end);

// Whose outputs the attempt after the present one takes over.
std::optional<Placement> FormerAfter(const LiveJob& job);

// The nodes that the attempt after the present one had better not have.
std::vector<std::string> AvoidAfter(const LiveJob& job);

// The step back to Queued.
Step StepToNextAttempt(const LiveJob& job, const std::string& why);

// What follows from that step in memory: the job's nodes are its no more.
void BeginNextAttempt(LiveJob& job);

}  // namespace tutti::service
