// Decides which step a placed job can take now: a pure function of its state and of what its
// launchers have reported. One step at a time, so that no state is left out when reports come in a
// bunch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/service/attempt/gang.h"
#include "platform/service/diagnosis/diagnosis.h"
#include "platform/store/job_state.h"
#include "spec/types/job_distribution.h"

namespace tutti::service {

// Why a job is Finalizing. All but kEnded: its processes are to be stopped. kServed: its chief has
// ended well, and those that serve it never end by themselves.
enum class Cause { kNone, kEnded, kFailure, kCanceled, kTimedOut, kServed };

absl::string_view Name(Cause cause);
Cause CauseFromName(absl::string_view name);  // kNone for what is no cause
inline bool MustStop(Cause cause) { return cause != Cause::kNone && cause != Cause::kEnded; }

// The reason of the step to Finalizing, when a user asks for a job's end. With another reason, that
// one is why it ended.
inline constexpr char kCancelAsked[] = "cancel was asked for; ending what runs";

struct JobNow {
  store::JobState state = store::JobState::kProvisioning;
  Cause cause = Cause::kNone;
  int world_size = 1;
  int servers = 0;                      // the last ranks, as JobSpec::ServerCount() says
  spec::ServerWords server_words = {};  // of jobs with servers
  bool mpi = false;
  int node_count = 1;
  std::string environment;  // that may have to be made first; empty: the host's
  std::string reason;       // of its state
  // It tells the user something while the job runs, and when it has ended; or it is empty.
  std::string note;
  absl::Duration time_limit = absl::InfiniteDuration();
  // When the service ends the job itself, should its launchers fail to; since boot.
  absl::Duration overdue = absl::InfiniteDuration();
  bool judged = false;            // the cluster has said that it is over, with a verdict or without
  std::string verdict;            // how the cluster ended it, if that has a reason of its own
  bool lost = false;              // and that is the loss of a node
  bool disk_full = false;         // or that of the disk of all nodes, before anything had begun
  bool verdict_may_come = false;  // the cluster has not said yet that it is over
};

struct Step {
  store::JobState state;
  std::string reason;
  Cause cause = Cause::kNone;
  std::vector<Failure> failures;
  bool lost_node = false;      // of a failure: a node was lost, the job itself is not at fault
  bool ran_nothing = false;    // likewise: before any process began, or had run for long
  bool disk_full = false;      // likewise: for the disk of all nodes was full
  bool filled_by_job = false;  // of the job's own files
};

// Returns a job's reason without what stands behind it for its user to know ("…; note: …").
absl::string_view WithoutNotes(absl::string_view reason);

// `now` is since boot.
std::optional<Step> NextStep(const JobNow& job, const Gang& gang, absl::Duration now);

}  // namespace tutti::service
