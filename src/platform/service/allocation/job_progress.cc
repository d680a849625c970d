#include "platform/service/allocation/job_progress.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/allocation/launcher_silence.h"
#include "platform/service/jobs/next_attempt.h"
#include "platform/service/jobs/placed_job.h"

namespace tutti::service {
namespace {

using store::JobState;

// Launchers end a job at its time limit; this much later the service does.
constexpr absl::Duration kTimeLimitSlack = absl::Seconds(30);

std::string OutputNote(uint64_t limit) {
  return absl::StrCat("it prints more than the ", limit >> 20,
                      " MiB that are kept of a job's output (tutti serve --log-limit): what comes "
                      "after that is left out, but for the end of each file");
}

// Returns what NextStep decides on.
JobNow NowOf(const SharedState& state, const LiveJob& job) {
  const spec::JobSpec& spec = job.record.job.spec;
  const PlacedJob& placed = *job.placed;
  JobNow now{.state = job.record.last.state,
             .cause = job.cause,
             .world_size = spec.WorldSize(),
             .servers = spec.ServerCount(),
             .server_words = spec::DriverOf(spec.distribution).server_words,
             .mpi = spec::DriverOf(spec.distribution).is_mpi,
             .node_count = placed.gang.size(),
             .environment = spec.environment.is_host ? "" : spec.environment.name,
             .reason = job.record.last.reason,
             .note = placed.logs->full() ? OutputNote(state.options.log_limit) : placed.left,
             .time_limit = spec.timeout,
             .judged = spec.compute != "local" && placed.judged,
             .verdict = placed.verdict,
             .lost = placed.lost,
             .disk_full = placed.disk_full,
             .verdict_may_come = VerdictMayCome(state, job)};
  if (job.record.started) {
    now.overdue = state.clock->SinceBoot() - RunTimeOf(state, job) + spec.timeout +
                  state.options.stop_grace + kTimeLimitSlack;
  }
  return now;
}

}  // namespace

void JobProgress::AdvanceAll(Effects& effects) {
  NoteLook(state_);
  std::erase_if(table_.placed(), [&](LiveJob* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    return AdvanceOne(*job, effects);
  });
}

bool JobProgress::AdvanceOne(LiveJob& job, Effects& effects) {
  const std::string id = job.record.job.id;
  const absl::StatusOr<bool> left = Advance(job, effects);
  state_.problems.Note(absl::StrCat("job ", id, " cannot go on"), left.status(), {.job = id});
  if (!left.ok() || !*left) return false;
  state_.problems.Note(OutputProblem(state_, id), absl::OkStatus());
  if (IsEnd(job.record.last.state)) table_.Remove(job);
  return true;
}

absl::StatusOr<bool> JobProgress::Advance(LiveJob& job, Effects& effects) {
  if (job.placed == nullptr) return false;
  output_.LookAfter(job, effects);
  GiveUpOnTheSilent(state_, job, effects);
  while (!output_.MustAwait(job)) {
    const JobNow now = NowOf(state_, job);
    std::optional<Step> step = NextStep(now, job.placed->gang, state_.clock->SinceBoot());
    if (!step) break;
    const std::string& why = job.record.last.reason;
    if (step->state == JobState::kCanceled && why != kCancelAsked) step->reason = why;
    const bool completes = step->state == JobState::kCompleted;
    if (IsEnd(step->state) && !output_.Close(job, completes, effects)) break;
    if (IsEnd(step->state) && !health_.JudgeFailure(job, *step, effects)) break;
    if (IsEnd(step->state)) health_.NoteEnd(job, *step, effects);
    if (MayBeginAgain(job, *step)) {
      const Placement left = job.placed->placement;
      TUTTI_RETURN_IF_ERROR(table_.BeginAgain(job, *step));
      leaving_.Add(job, left);
      return true;
    }
    TUTTI_RETURN_IF_ERROR(table_.Append(job, *step));
    if (IsEnd(step->state)) {
      leaving_.Add(job, job.placed->placement);
      return true;
    }
  }
  AddEffects(state_.options, job, effects);
  return false;
}

}  // namespace tutti::service
