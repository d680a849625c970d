#include "platform/service/flow/sweep_runner.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/flow/next_of_sweep.h"
#include "platform/service/flow/flow_children.h"
#include "platform/service/flow/trial.h"

namespace tutti::service {
namespace {

// The values that were proposed for the next trial; null: none were.
const flow::Values* NextOf(const LiveFlow& sweep) {
  const Proposals& proposals = sweep.proposals;
  const int index = sweep.trials->size() + 1 - proposals.first;
  const bool is_there = index >= 0 && index < std::ssize(proposals.values);
  return is_there ? &proposals.values[index] : nullptr;
}

}  // namespace

absl::StatusOr<bool> SweepRunner::Advance(LiveJob& sweep, Effects& effects) {
  const store::Job& job = sweep.record.job;
  while (true) {
    const flow::SweepTrials& trials = *sweep.flow->trials;
    const flow::SweepDecision decision =
        flow::NextOfSweep(job.spec, SeedOf(job),
                          {.trials = trials,
                           .canceled = sweep.cause == Cause::kCanceled,
                           .timed_out = sweep.cause == Cause::kTimedOut,
                           .may_start = RoomInQueue(sweep),
                           .proposed = NextOf(*sweep.flow)});
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
    sweep.flow->proposals.values.clear();  // what is proposed later knows more
    if (decision.to_propose > 0) {
      AskForProposals(sweep, decision.to_propose, effects);
      return false;
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
int SweepRunner::RoomInQueue(const LiveJob& sweep) const {
  int queued = 0;
  for (const std::string& step : sweep.flow->active) {
    const LiveJob* const live = table_.Find(sweep.flow->children.at(step).id);
    if (live != nullptr && live->placed == nullptr) ++queued;
  }
  return static_cast<int>(state_.nodes.size()) + 1 - queued;
}

void SweepRunner::AskForProposals(LiveJob& sweep, int count, Effects& effects) const {
  if (sweep.flow->proposals.under_way) return;
  sweep.flow->proposals.under_way = true;
  const store::Job& job = sweep.record.job;
  const int first = sweep.flow->trials->size() + 1;
  const auto propose = [this, id = job.id, seed = SeedOf(job), of = *job.spec.sweep, first, count,
                        seen = sweep.flow->trials->Observations()] {
    const flow::Sampler sampler(of, seed, seen);
    std::vector<flow::Values> values;
    for (int number = first; number < first + count && !state_.ending; ++number) {
      if (auto of_trial = sampler.Propose(number)) values.push_back(*std::move(of_trial));
    }
    if (!state_.ending) NoteProposals(id, first, std::move(values));
  };
  effects.decisions.push_back({job.id, propose});
}

void SweepRunner::NoteProposals(const std::string& sweep, int first,
                                std::vector<flow::Values> values) const {
  StateLock lock(state_);
  const LiveJob* const job = table_.Find(sweep);
  if (job == nullptr || job->flow == nullptr) return;
  job->flow->proposals = {.first = first, .values = std::move(values)};
  job->flow->changed = true;
  state_.Wake();
}

}  // namespace tutti::service
