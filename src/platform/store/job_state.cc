#include "platform/store/job_state.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/closest.h"

namespace tutti::store {
namespace {

constexpr std::array<absl::string_view, kJobStates.size()> kNames = {
    "Queued",     "Preparing", "Provisioning", "Starting", "Running",
    "Finalizing", "Completed", "Failed",       "Canceled"};

// kAllowed[from][to], in the order of JobState.
constexpr bool kAllowed[kJobStates.size()][kJobStates.size()] = {
    // Q  Pp Pv St Rn Fi Co Fa Ca
    {1, 1, 1, 1, 1, 1, 0, 1, 1},  // Queued
    {1, 1, 1, 1, 1, 1, 0, 1, 1},  // Preparing
    {1, 1, 1, 1, 1, 1, 0, 1, 1},  // Provisioning
    {1, 0, 0, 1, 1, 1, 0, 1, 1},  // Starting
    {1, 0, 0, 0, 1, 1, 0, 1, 1},  // Running
    {1, 0, 0, 0, 0, 1, 1, 1, 1},  // Finalizing
    {0, 0, 0, 0, 0, 0, 0, 0, 0},  // Completed
    {0, 0, 0, 0, 0, 0, 0, 0, 0},  // Failed
    {0, 0, 0, 0, 0, 0, 0, 0, 0},  // Canceled
};

}  // namespace

absl::string_view Name(JobState state) { return kNames[static_cast<size_t>(state)]; }

absl::StatusOr<JobState> JobStateFromName(absl::string_view name) {
  for (const JobState state : kJobStates) {
    if (absl::EqualsIgnoreCase(name, Name(state))) return state;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown job state \"", name, "\"",
                                                 base::DidYouMean(name, kNames),
                                                 "; the states are ", absl::StrJoin(kNames, ", ")));
}

bool IsEnd(JobState state) { return state >= JobState::kCompleted; }

bool CanFollow(JobState from, JobState to) {
  return kAllowed[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

}  // namespace tutti::store
