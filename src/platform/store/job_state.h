// JobState has the states of a job; CanFollow says which may follow which. All functions are pure.
//
//   Queued -> Provisioning <-> Preparing -> Starting -> Running -> Finalizing -> Completed
//
// Nodes are provisioned, then prepared; what needs no node is prepared before there is one. Steps
// may be skipped on the way forward, but only Finalizing leads to Completed. Failed and
// Canceled follow any state that is not an end. A job that is to run again (preempted, retried)
// goes back to Queued. A state may follow itself: the same state with another reason.
#pragma once

#include <array>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::store {

enum class JobState {
  kQueued,
  kPreparing,
  kProvisioning,
  kStarting,
  kRunning,
  kFinalizing,
  kCompleted,
  kFailed,
  kCanceled,
};

inline constexpr std::array kJobStates = {
    JobState::kQueued,    JobState::kPreparing, JobState::kProvisioning,
    JobState::kStarting,  JobState::kRunning,   JobState::kFinalizing,
    JobState::kCompleted, JobState::kFailed,    JobState::kCanceled,
};

// Returns "Queued", as people, REST and the database see it.
absl::string_view Name(JobState state);
// Reads a state's name; InvalidArgument names the states there are. Case does not matter.
absl::StatusOr<JobState> JobStateFromName(absl::string_view name);

// Returns whether it is Completed, Failed or Canceled: nothing follows.
bool IsEnd(JobState state);
bool CanFollow(JobState from, JobState to);

}  // namespace tutti::store
