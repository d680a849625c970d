#include "platform/service/next_step.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tutti::service {
namespace {

using store::JobState;

constexpr std::array<absl::string_view, 5> kCauses = {"none", "ended", "failure", "canceled",
                                                      "timed_out"};

std::string Count(int n, absl::string_view one, absl::string_view many) {
  return absl::StrCat(n, " ", n == 1 ? one : many);
}

std::string Processes(const JobNow& job) { return Count(job.world_size, "process", "processes"); }

Step EndOf(const JobNow& job, const Gang& gang) {
  GangEnd end = gang.End();
  end.time_limit = job.time_limit;
  end.timed_out = job.cause == Cause::kTimedOut;
  if (job.cause == Cause::kCanceled) return {JobState::kCanceled, "canceled", job.cause};
  Diagnosis diagnosis = Diagnose(end);
  if (diagnosis.failed()) {
    return {JobState::kFailed, diagnosis.line, job.cause, std::move(diagnosis.failures)};
  }
  return {JobState::kCompleted,
          job.world_size == 1
              ? "its process ended with exit code 0"
              : absl::StrCat("all ", job.world_size, " processes ended with exit code 0"),
          job.cause};
}

std::optional<Step> Forward(const JobNow& job, const Gang& gang) {
  switch (job.state) {
    case JobState::kProvisioning:
      if (!gang.AnyPreparing()) return std::nullopt;
      return Step{JobState::kPreparing,
                  absl::StrCat(job.environment.empty()
                                   ? "putting code and inputs in place on "
                                   : absl::StrCat("putting code, inputs and environment ",
                                                  job.environment, " in place on "),
                               Count(job.node_count, "node", "nodes"))};
    case JobState::kPreparing:
      if (!gang.AllPrepared()) return std::nullopt;
      return Step{
          JobState::kStarting,
          absl::StrCat("every node is prepared; starting ", Processes(job),
                       gang.notes().empty() ? "" : "; note: ", absl::StrJoin(gang.notes(), "; "))};
    case JobState::kStarting:
      if (!gang.AllStarted()) return std::nullopt;
      return Step{JobState::kRunning,
                  absl::StrCat(Processes(job), " on ", Count(job.node_count, "node", "nodes"))};
    case JobState::kRunning:
      if (!gang.AllExited()) return std::nullopt;
      return Step{JobState::kFinalizing, "every process has ended; collecting results",
                  Cause::kEnded};
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::string_view Name(Cause cause) { return kCauses[static_cast<int>(cause)]; }

Cause CauseFromName(absl::string_view name) {
  for (size_t i = 0; i < kCauses.size(); ++i) {
    if (kCauses[i] == name) return static_cast<Cause>(i);
  }
  return Cause::kNone;
}

std::optional<Step> NextStep(const JobNow& job, const Gang& gang, absl::Time now) {
  if (job.state == JobState::kFinalizing) {
    if (!gang.AllDone()) return std::nullopt;
    return EndOf(job, gang);
  }
  if (const Diagnosis trouble = Diagnose(gang.End()); trouble.failed()) {
    const bool alone = gang.AllExited();
    return Step{JobState::kFinalizing,
                absl::StrCat(trouble.line, alone ? "" : "; ending the other processes"),
                Cause::kFailure};
  }
  if (now > job.overdue) {
    return Step{JobState::kFinalizing, "its time limit has passed; ending its processes",
                Cause::kTimedOut};
  }
  return Forward(job, gang);
}

}  // namespace tutti::service
