#include "platform/service/jobs/next_attempt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "platform/service/diagnosis/faulty_node.h"

namespace tutti::service {
namespace {

using store::JobState;

// A node that was found to be ill before anything ran, or a shared disk that was full, costs none
// of the job's retries, but not without end: all nodes may be ill.
constexpr int kMoreForIllNodes = 2;

bool HasRetries(const LiveJob& job, bool ran_nothing = false) {
  return job.attempt() <= job.record.job.spec.max_retries + (ran_nothing ? kMoreForIllNodes : 0);
}

}  // namespace

std::string AllocationOf(const store::Job& job, int attempt) {
  return absl::StrCat(job.id, ".", job.sequence, attempt > 1 ? absl::StrCat("-", attempt) : "");
}

std::string AllocationOf(const LiveJob& job) { return AllocationOf(job.record.job, job.attempt()); }

bool MayBeginAgain(const LiveJob& job, const Step& end) {
  const bool was_over = job.cause == Cause::kTimedOut || job.cause == Cause::kServed;
  return end.state == JobState::kFailed && end.lost_node && !was_over &&
         HasRetries(job, end.ran_nothing);
}

bool MightBeginAgain(const LiveJob& job) { return job.cause == Cause::kFailure && HasRetries(job); }

// One that was lost before it had taken over what the attempts before it wrote leaves that to the
// next one.
std::optional<Placement> FormerAfter(const LiveJob& job) {
  return job.placed != nullptr && job.placed->gang.AllPrepared() ? job.placed->placement
                                                                 : job.former;
}

std::vector<std::string> AvoidAfter(const LiveJob& job) {
  std::vector<std::string> avoid = job.avoid;
  if (job.placed == nullptr || job.placed->disk_full) return avoid;
  for (const std::string& node : NodesToAvoid(job.placed->gang.End())) {
    if (std::find(avoid.begin(), avoid.end(), node) == avoid.end()) avoid.push_back(node);
  }
  return avoid;
}

Step StepToNextAttempt(const LiveJob& job, const std::string& why) {
  const int attempts = std::max(job.record.job.spec.max_retries, job.attempt()) + 1;
  return {.state = JobState::kQueued,
          .reason = absl::StrCat(why, "; it is begun again, attempt ", job.attempt() + 1, " of ",
                                 attempts)};
}

void BeginNextAttempt(LiveJob& job) {
  job.former = FormerAfter(job);
  job.avoid = AvoidAfter(job);
  job.begun_before = job.attempt();
  job.placed.reset();
  job.handed_over = job.being_handed = false;
  job.waits_for = job.record.last.reason;
  job.expected_start.reset();
  job.record.started.reset();
  job.begun_at.reset();
}

}  // namespace tutti::service
