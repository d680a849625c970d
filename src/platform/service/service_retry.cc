// Jobs that are begun again. A job of which a node was lost goes back to Queued as long as its
// retries last, with what it had written: its logs go on behind what they hold, and the next
// attempt finds the outputs of the one before, from whose checkpoints it can resume.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/service_core.h"

namespace tutti::service {

using store::JobState;

std::string ServiceCore::AllocationOf(const store::Job& job, int attempt) {
  return absl::StrCat(job.id, ".", job.sequence, attempt > 1 ? absl::StrCat("-", attempt) : "");
}

engine::Allocation ServiceCore::AllocationFor(const LiveJob& job,
                                              const Placement& placement) const {
  const store::Job& fixed = job.record.job;
  engine::Allocation allocation{
      .id = placement.allocation,
      .plans = PlansOf(fixed, placement, options_.launcher_file, options_.stop_grace),
      .priority = fixed.spec.priority,
      .slurm = fixed.spec.slurm};
  for (size_t i = 0; i < allocation.plans.size(); ++i) {
    allocation.plans[i].attempt = job.attempt();
    if (!job.former || i >= job.former->nodes.size()) continue;
    allocation.plans[i].former_directory =
        (std::filesystem::path(job.former->nodes[i].directory) / job.former->allocation).native();
  }
  return allocation;
}

bool ServiceCore::MayBeginAgain(const LiveJob& job, const Step& end) {
  const bool was_over = job.cause == Cause::kTimedOut || job.cause == Cause::kServed;
  return end.state == JobState::kFailed && end.lost_node && !was_over &&
         job.attempt() <= job.record.job.spec.max_retries;
}

// One that was lost before it had taken over what the attempts before it wrote leaves that to the
// next one.
std::optional<Placement> ServiceCore::FormerAfter(const LiveJob& job) {
  return job.placed != nullptr && job.placed->gang.AllPrepared() ? job.placed->placement
                                                                 : job.former;
}

absl::Status ServiceCore::BeginAgain(LiveJob& job, const std::string& why) {
  const int attempts = job.record.job.spec.max_retries + 1;
  const Step again{.state = JobState::kQueued,
                   .reason = absl::StrCat(why, "; it is begun again, attempt ", job.attempt() + 1,
                                          " of ", attempts)};
  TUTTI_RETURN_IF_ERROR(Append(job, again));
  job.former = FormerAfter(job);
  job.begun_before = job.attempt();
  job.placed.reset();
  job.handed_over = false;
  job.waits_for = again.reason;
  job.expected_start.reset();
  job.record.started.reset();
  return absl::OkStatus();
}

bool ServiceCore::IsStillNeeded(absl::string_view allocation) {
  const auto live = live_.find(JobOfAllocation(allocation));
  if (live == live_.end() || !live->second->former) return false;
  const LiveJob& job = *live->second;
  return job.former->allocation == allocation &&
         (job.placed == nullptr || !job.placed->gang.AllPrepared());
}

}  // namespace tutti::service
