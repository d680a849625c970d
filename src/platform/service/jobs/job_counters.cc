#include "platform/service/jobs/job_counters.h"

#include "platform/service/jobs/live_job.h"

namespace tutti::service {
namespace {

SubmissionKind KindOf(const store::Job& job) {
  if (!job.parent.empty()) return SubmissionKind::kChild;
  switch (job.spec.kind) {
    case spec::JobKind::kCommand:
      return SubmissionKind::kCommand;
    case spec::JobKind::kPipeline:
      return SubmissionKind::kPipeline;
    case spec::JobKind::kSweep:
      break;
  }
  return SubmissionKind::kSweep;
}

// `began`: its processes were started.
FailureKind KindOfFailure(const store::Job& job, const EventDetail& detail, bool began) {
  if (job.spec.kind != spec::JobKind::kCommand) return FailureKind::kChild;
  if (detail.cause == Cause::kTimedOut) return FailureKind::kTimeLimit;
  const FailureKind kind =
      detail.failures.empty() ? FailureKind::kOther : detail.failures.front().kind;
  return kind == FailureKind::kOther && !began ? FailureKind::kPreparation : kind;
}

}  // namespace

absl::string_view Name(SubmissionKind kind) {
  switch (kind) {
    case SubmissionKind::kCommand:
      return "command";
    case SubmissionKind::kPipeline:
      return "pipeline";
    case SubmissionKind::kSweep:
      return "sweep";
    case SubmissionKind::kChild:
      break;
  }
  return "child";
}

void JobCounters::CountFailure(const store::Job& job, const EventDetail& detail, bool began) {
  ++counts_.failures[KindOfFailure(job, detail, began)];
}

void JobCounters::OnEvent(const store::Job& job, const store::Event& event,
                          const EventDetail& detail) {
  const auto [found, is_new] = live_.try_emplace(job.sequence);
  Known& known = found->second;
  const bool is_queued = event.state == store::JobState::kQueued;
  // One that an earlier service took in may be seen first as it begins again.
  const bool begins_again = is_queued && detail.begun_before > 0;
  if (is_new && is_queued && !begins_again) {
    known.submitted_here = true;
    ++counts_.submitted[KindOf(job)];
  }
  // The same state with another reason.
  if (!is_new && known.state == event.state) return;
  known.state = event.state;
  ++counts_.entered[event.state];
  if (begins_again) {
    ++counts_.restarts;
    known.began = false;
  }
  known.began |= event.state == store::JobState::kStarting ||
                 event.state == store::JobState::kRunning ||
                 (is_new && event.state == store::JobState::kFinalizing);
  if (event.state == store::JobState::kRunning) {
    const bool first = known.running == absl::InfinitePast();
    if (first && known.submitted_here) counts_.waits.Add(event.time - job.created);
    known.running = event.time;
  }
  if (!IsEnd(event.state)) return;
  if (event.state == store::JobState::kFailed) CountFailure(job, detail, known.began);
  if (known.running != absl::InfinitePast()) counts_.runs.Add(event.time - known.running);
  live_.erase(found);
}

}  // namespace tutti::service
