// Begins a job's outputs with those of the earlier job from which it resumes (decision 104): each
// node gets all of them, and the service gets them once, before any process could write a newer
// one.
#pragma once

#include <atomic>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/launch/delivery/results.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns whether the attempt before had all that it was to begin with, so that its folder has what
// this one goes on with. Also true of a job that resumes from none.
bool FormerAttemptHadBegun(const spec::LaunchPlan& plan);

// Copies the earlier job's outputs into this job's: what it had as a declared output into the one
// of that name, unless a store fills it, and all else into work/outputs. Its MLflow stores stay
// with it: they have its runs. Returns what the service is to be sent now, by the first of several
// nodes alone. NotFound if the node does not have the folder; Cancelled once `cancelled` is set.
absl::StatusOr<std::vector<Result>> CopyResumedFiles(const spec::LaunchPlan& plan,
                                                     const std::atomic<bool>& cancelled);

// Notes which of the files that this attempt took over from the one before that one had not
// changed, nor had those before it.
absl::Status KeepResumedFiles(const spec::LaunchPlan& plan);

// Takes out of the results of one of several nodes what lies there as it came from the earlier job:
// the service has it, or a newer one of another node.
void LeaveOutResumedFiles(const spec::LaunchPlan& plan, Results& results);

}  // namespace tutti::launch
