#include "platform/service/flow/sweep_runner.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/flow/next_of_sweep.h"
#include "platform/service/flow/flow_children.h"
#include "platform/service/flow/trial.h"

namespace tutti::service {

absl::StatusOr<bool> SweepRunner::Advance(LiveJob& sweep, Effects& effects) {
  const store::Job& job = sweep.record.job;
  while (true) {
    const flow::SweepTrials& trials = *sweep.flow->trials;
    const flow::SweepDecision decision =
        flow::NextOfSweep(job.spec, SeedOf(job),
                          {.trials = trials,
                           .canceled = sweep.cause == Cause::kCanceled,
                           .timed_out = sweep.cause == Cause::kTimedOut,
                           .may_start = !QueuesEnough(sweep)});
    for (const flow::TrialStop& stop : decision.stops) {
      TUTTI_RETURN_IF_ERROR(
          transitions_.StopChild(sweep, flow::TrialName(stop.number), stop.reason));
    }
    if (decision.starts) {
      const int number = trials.size() + 1;
      TUTTI_RETURN_IF_ERROR(insertion_.Insert(
          sweep, flow::TrialName(number),
          {.spec = TrialSpec(job.spec, number, decision.values), .snapshot = job.snapshot}, {}));
      continue;
    }
    if (decision.outcome == flow::Outcome::kNone) {
      TUTTI_RETURN_IF_ERROR(transitions_.TellProgress(sweep, decision.line));
      return false;
    }
    std::vector<FlowTransitions::Result> results;
    if (decision.best > 0) {
      const std::string best = ChildId(sweep, flow::TrialName(decision.best));
      results.push_back({state_.files.FolderOf(best) / "outputs", ""});
    }
    return transitions_.End(sweep, decision.outcome, decision.line, std::move(results), effects);
  }
}

// What is proposed later knows more, and a queue of thousands of trials helps nobody.
bool SweepRunner::QueuesEnough(const LiveJob& sweep) const {
  size_t queued = 0;
  for (const std::string& step : sweep.flow->active) {
    const LiveJob* const live = table_.Find(sweep.flow->children.at(step).id);
    if (live != nullptr && live->placed == nullptr) ++queued;
  }
  return queued > state_.nodes.size();
}

}  // namespace tutti::service
