// Checks, before a job queues, that the job from which it resumes has ended and left something.
// Thread-safe.
#pragma once

#include "base/faults.h"
#include "platform/service/jobs/shared_state.h"
#include "spec/types/job.h"

namespace tutti::service {

// Adds a fault, with its place in the job file, for each job of the tree that cannot resume as its
// key `resume` says.
void CheckResume(const spec::JobSpec& job, SharedState& state, base::Faults& faults);

}  // namespace tutti::service
