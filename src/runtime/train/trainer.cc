#include "runtime/train/trainer.h"

#include <torch/types.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/device/device.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/run_output.h"
#include "runtime/train/run_state.h"
#include "runtime/train/setup/agreement.h"
#include "runtime/train/setup/resolve.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti::train {
namespace {

// Between two comparisons of the ranks, besides those at the ends of epochs.
constexpr int64_t kStepsPerComparison = 100;

bool Every(int64_t steps, int64_t step) { return steps > 0 && step % steps == 0; }

class Run {
 public:
  // `resolved` is for the ranks of `communicator`.
  Run(Resolved resolved, torch::Device device, const TrainerContext& context)
      : resolved_(std::move(resolved)),
        device_(device),
        context_(context),
        timeout_(absl::Seconds(recipe().step_timeout)),
        output_(recipe(), context, parts_) {}

  absl::Status Prepare(std::unique_ptr<comm::Communicator> communicator);
  absl::StatusOr<Outcome> ToTheEnd();
  // Says how it ended; what ended it is the result.
  absl::StatusOr<Outcome> Ended(absl::StatusOr<Outcome> outcome);

 private:
  absl::StatusOr<bool> Step();  // true: stop
  absl::StatusOr<parallel::StepResult> StepOf(const parallel::Batch& batch, double learning_rate);
  absl::StatusOr<bool> Work(StepParts times);  // true: stop
  int64_t NextMeeting() const;
  absl::StatusOr<bool> Settle();
  absl::Status AfterStep();
  bool EvaluationIsDue() const;
  absl::Status EvaluateNow();
  absl::Status Annotated(const absl::Status& status, int64_t good) const;
  base::Deadline Soon() const { return base::Deadline::After(timeout_); }

  const Recipe& recipe() const { return resolved_.recipe; }
  int64_t step() const { return progress_.step; }  // done
  int64_t last_step() const { return std::max<int64_t>(step() - 1, 0); }
  int64_t steps_per_epoch() const { return parts_.train->steps_per_epoch(); }

  const Resolved resolved_;
  const torch::Device device_;
  const TrainerContext& context_;
  const absl::Duration timeout_;
  Parts parts_;
  RunOutput output_;
  RunProgress progress_;
  bool has_met_ = false;  // after the last turn, with all ranks
  Outcome outcome_;
  std::optional<Evaluation> evaluation_;  // of the state after the last step, if by this process
};

absl::Status Run::Prepare(std::unique_ptr<comm::Communicator> communicator) {
  TUTTI_ASSIGN_OR_RETURN(
      parts_,
      MakeParts(recipe(), output_.timeline().Watch(std::move(communicator)), device_,
                {output_.timeline().WatchPasses(), {context_.free_memory, resolved_.former_cut}}));
  TUTTI_RETURN_IF_ERROR(CheckSameImages(parts_.input, *parts_.strategy, timeout_));
  TUTTI_ASSIGN_OR_RETURN(const Resumed resumed,
                         BeginOrResume(recipe(), parts_, progress_, timeout_));
  TUTTI_RETURN_IF_ERROR(output_.Open(resumed, resolved_.precision_reason, step()));
  // Whoever stopped the run after an epoch's last step did not wait for its evaluation.
  const bool is_due = step() > 0 && !progress_.evaluated && EvaluationIsDue();
  return is_due ? EvaluateNow() : absl::OkStatus();
}

absl::StatusOr<Outcome> Run::ToTheEnd() {
  TUTTI_RETURN_IF_ERROR(output_.timeline().Begin(*parts_.strategy, Soon()));
  bool is_done = step() >= parts_.schedule.total_steps;
  while (!is_done) {
    TUTTI_ASSIGN_OR_RETURN(const bool stop, Step());
    outcome_.step = step();
    if (context_.step_done) context_.step_done(step());
    if (stop && step() < parts_.schedule.total_steps) {
      outcome_.stopped = true;
      TUTTI_RETURN_IF_ERROR(output_.ReportUnreadable(step()));
      TUTTI_RETURN_IF_ERROR(output_.SaveCheckpoint(progress_, CheckpointSaver::Need::kLast));
      TUTTI_RETURN_IF_ERROR(output_.WriteTrace());
      return std::move(outcome_);
    }
    if (has_met_ || parts_.strategy->in_step()) TUTTI_RETURN_IF_ERROR(AfterStep());
    is_done = has_met_ && step() >= parts_.schedule.total_steps;
  }
  if (!evaluation_) TUTTI_RETURN_IF_ERROR(EvaluateNow());
  outcome_.step = step();
  outcome_.metrics = evaluation_->metrics;
  TUTTI_RETURN_IF_ERROR(output_.Finish(outcome_.meter, *evaluation_));
  return std::move(outcome_);
}

absl::StatusOr<Outcome> Run::Ended(absl::StatusOr<Outcome> outcome) {
  output_.Ended(outcome.status(), outcome.ok() && outcome->stopped);
  return outcome;
}

// A turn: load, forward and backward, step; how long each took. Then the ranks meet, if it is time.
absl::StatusOr<bool> Run::Step() {
  evaluation_.reset();
  progress_.evaluated = false;
  if (context_.stop_wanted && context_.stop_wanted()) parts_.strategy->RequestStop();
  StepParts times;
  times.other = output_.timeline().Lap();
  auto turn = parts_.strategy->NextTurn(step(), NextMeeting(), Soon());
  if (!turn.ok()) return Annotated(turn.status(), step());
  times.communication = output_.timeline().Lap();
  for (const int64_t wanted : turn->steps) parts_.train->Want(wanted);
  progress_.step = turn->done;
  bool stop = false;
  if (turn->works) {
    TUTTI_ASSIGN_OR_RETURN(stop, Work(times));
  }
  has_met_ = turn->last || stop;
  if (has_met_) {
    TUTTI_ASSIGN_OR_RETURN(const bool late, Settle());
    stop |= late;
  }
  output_.report().Stepped(outcome_.meter, step(), parts_.schedule.LearningRate(last_step()),
                           has_met_ && Every(steps_per_epoch(), step()));
  return stop;
}

absl::StatusOr<bool> Run::Work(StepParts times) {
  Timeline& timeline = output_.timeline();
  const bool is_fed = parts_.strategy->layout().is_fed();
  const auto batch = is_fed
                         ? parts_.train->Next(Soon())
                         : absl::StatusOr<parallel::Batch>(parallel::Batch{{}, torch::zeros({0})});
  if (!batch.ok()) return Annotated(batch.status(), step());
  times.data = timeline.Lap();
  TUTTI_ASSIGN_OR_RETURN(const auto result, StepOf(*batch, parts_.schedule.LearningRate(step())));
  times.backward = result.times.backward;
  times.optimizer = result.times.update;
  times.forward = timeline.Lap() - times.backward - result.times.communication - times.optimizer;
  times.communication += result.times.communication;
  ++progress_.step;
  outcome_.meter.Add(times, result.loss, result.count);
  timeline.AddStep(step(), times);
  return result.stop;
}

// The next step after which there is something to do for all ranks.
int64_t Run::NextMeeting() const {
  int64_t next = parts_.schedule.total_steps;
  for (const int64_t every : {steps_per_epoch(), recipe().checkpoint_every_steps}) {
    if (every > 0) next = std::min(next, (step() / every + 1) * every);
  }
  return next;
}

absl::StatusOr<parallel::StepResult> Run::StepOf(const parallel::Batch& batch,
                                                 double learning_rate) {
  // Of dropout. The generator takes 32 bits, which the factor spreads ranks over.
  constexpr uint64_t kApart = 2654435761;
  torch::manual_seed(static_cast<uint64_t>(recipe().seed) + static_cast<uint64_t>(step()) +
                     static_cast<uint64_t>(parts_.strategy->rank()) * kApart);
  auto result = parts_.strategy->Step(batch, learning_rate, Soon());
  if (result.ok()) return result;
  const int64_t begun = step() + 1;
  return Annotated(result.status(), begun - std::max<int64_t>(parts_.strategy->outstanding(), 1));
}

// Whether some rank asked to stop.
absl::StatusOr<bool> Run::Settle() {
  const auto late = parts_.strategy->Settle(Soon());
  if (!late.ok()) return Annotated(late.status(), step() - parts_.strategy->outstanding());
  outcome_.meter.AddLate(late->loss, late->count);
  if (parts_.strategy->hands_out()) parts_.train->SetPosition(step());
  return late->stop;
}

// The step after the first `good` ones is at fault.
absl::Status Run::Annotated(const absl::Status& status, int64_t good) const {
  return base::Annotate(
      status, absl::StrCat("step ", good + 1, " (epoch ", good / steps_per_epoch() + 1, ")"));
}

absl::Status Run::AfterStep() {
  const bool end_of_epoch = Every(steps_per_epoch(), step());
  const bool in_step = parts_.strategy->in_step();
  const bool may_compare = in_step ? Every(kStepsPerComparison, step()) : has_met_;
  if (may_compare || end_of_epoch) {
    TUTTI_RETURN_IF_ERROR(output_.CompareRanks(step(), outcome_.meter));
  }
  if (EvaluationIsDue()) {
    TUTTI_RETURN_IF_ERROR(EvaluateNow());
  } else if (end_of_epoch) {
    TUTTI_RETURN_IF_ERROR(output_.ReportUnreadable(step()));
  }
  const bool due = Every(recipe().checkpoint_every * steps_per_epoch(), step()) ||
                   Every(recipe().checkpoint_every_steps, step());
  return due ? output_.SaveCheckpoint(progress_, CheckpointSaver::Need::kPeriodic)
             : absl::OkStatus();
}

bool Run::EvaluationIsDue() const {
  return Every(recipe().evaluate_every * steps_per_epoch(), step());
}

absl::Status Run::EvaluateNow() {
  parts_.strategy->SwapWeights();
  TUTTI_ASSIGN_OR_RETURN(evaluation_,
                         Evaluate(*parts_.task, *parts_.strategy, *parts_.test,
                                  {.mirrored = recipe().evaluate_mirrored, .timeout = timeout_}));
  TUTTI_RETURN_IF_ERROR(output_.KeepIfBest(*evaluation_, step(), progress_.best));
  parts_.strategy->SwapWeights();
  progress_.evaluated = true;
  TUTTI_RETURN_IF_ERROR(output_.ReportUnreadable(step()));
  output_.timeline().Leave(SpanKind::kEvaluation, step());
  output_.report().Evaluated(step(), evaluation_->metrics, evaluation_->loss, evaluation_->images);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> Train(const Recipe& asked, std::unique_ptr<comm::Communicator> communicator,
                              const TrainerContext& context) {
  TUTTI_RETURN_IF_ERROR(Validate(asked));
  TUTTI_ASSIGN_OR_RETURN(
      const parallel::Layout layout,
      parallel::LayOut(asked.parallel.mesh, communicator->rank(), communicator->size()));
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(asked.device));
  TUTTI_ASSIGN_OR_RETURN(Resolved resolved, Resolve(asked, layout, device, *communicator));
  TUTTI_RETURN_IF_ERROR(CheckSameRecipe(resolved.recipe, *communicator,
                                        base::Deadline::After(absl::Seconds(asked.step_timeout))));
  Run run(std::move(resolved), device, context);
  const absl::Status prepared = run.Prepare(std::move(communicator));
  return run.Ended(prepared.ok() ? run.ToTheEnd() : prepared);
}

}  // namespace tutti::train
