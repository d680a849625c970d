#include "platform/service/jobs/next_attempt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "platform/service/diagnosis/faulty_node.h"

namespace tutti::service {
namespace {

using store::JobState;

// A node that was found to be ill before anything ran costs none of the job's retries, but not
// without end: all nodes may be ill. For a disk that all nodes share and that is full a job waits
// for a day; where its own files have filled it, for some minutes, as others may have helped: else
// it would fill it again and again, and hold up all who write there.
constexpr int kMoreForIllNodes = 2;
constexpr absl::Duration kAtOnce = absl::Seconds(5);
constexpr int kMostOnFullDisk = 300;  // attempts; the last pauses are five minutes
constexpr int kMostOfOwnFiles = 6;

// Between attempts that find the disk full: the first pause, which doubles, and the longest.
constexpr absl::Duration kFirstFullDiskPause = absl::Seconds(5);
constexpr absl::Duration kLongestFullDiskPause = absl::Minutes(5);

bool HasRetries(const LiveJob& job, bool ran_nothing = false) {
  return job.attempt() - job.begun_free <=
         job.record.job.spec.max_retries + (ran_nothing ? kMoreForIllNodes : 0);
}

// Returns whether an attempt that ends so costs no retry.
bool IsFree(const LiveJob& job, const Step& end) {
  return end.disk_full && job.begun_free < (end.filled_by_job ? kMostOfOwnFiles : kMostOnFullDisk);
}

// Returns whether the job's present attempt ends without having run, as far as is known.
bool RanNothing(const PlacedJob& placed) {
  return placed.disk_full || Diagnose(placed.gang.End()).ran_nothing;
}

}  // namespace

std::string AllocationOf(const store::Job& job, int attempt) {
  return absl::StrCat(job.id, ".", job.sequence, attempt > 1 ? absl::StrCat("-", attempt) : "");
}

std::string AllocationOf(const LiveJob& job) { return AllocationOf(job.record.job, job.attempt()); }

bool MayBeginAgain(const LiveJob& job, const Step& end) {
  const bool was_over = job.cause == Cause::kTimedOut || job.cause == Cause::kServed;
  return end.state == JobState::kFailed && end.lost_node && !was_over &&
         (IsFree(job, end) || HasRetries(job, end.ran_nothing && !end.filled_by_job));
}

bool FailedAtOnce(const LiveJob& job) {
  if (job.placed == nullptr) return false;
  // What ends in a moment may be heard of together with its start: the job was never Running.
  absl::Duration begun = absl::InfiniteDuration();
  if (job.begun_at) {
    begun = job.begun_at->since_boot;
  } else if (job.placed->started) {
    begun = job.placed->started_at;
  }
  bool any = false;
  for (const RankExit& exit : job.placed->gang.End().exits) {
    if (exit.ok() || exit.stopped) continue;
    if (exit.heard - begun > kAtOnce) return false;
    any = true;
  }
  return any;
}

bool MightBeginAgain(const LiveJob& job) {
  if (job.cause != Cause::kFailure) return false;
  if (HasRetries(job)) return true;
  const PlacedJob* const placed = job.placed.get();
  return placed != nullptr &&
         (RanNothing(*placed) || (placed->is_looked_into && FailedAtOnce(job)));
}

int FreeAfter(const LiveJob& job, const Step& end) {
  return job.begun_free + (IsFree(job, end) ? 1 : 0);
}

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

Step StepToNextAttempt(const LiveJob& job, const Step& end) {
  const int retries = job.record.job.spec.max_retries + FreeAfter(job, end);
  const int attempts = std::max(retries, job.attempt()) + 1;
  return {.state = JobState::kQueued,
          .reason = absl::StrCat(end.reason, "; it is begun again, attempt ", job.attempt() + 1,
                                 " of ", attempts),
          .disk_full = end.disk_full,
          .filled_by_job = end.filled_by_job};
}

void BeginNextAttempt(LiveJob& job, const Step& end, absl::Duration now) {
  job.begun_free = FreeAfter(job, end);
  job.not_before = -absl::InfiniteDuration();
  if (end.disk_full) {
    const int doublings = std::clamp(job.begun_free - 1, 0, 30);
    job.not_before =
        now + std::min(kFirstFullDiskPause * (int64_t{1} << doublings), kLongestFullDiskPause);
  }
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
