#include "runtime/train/trainer.h"

#include <torch/types.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/device/device.h"
#include "runtime/train/batch_tensors.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/run_output.h"
#include "runtime/train/run_state.h"
#include "runtime/train/setup/agreement.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti::train {
namespace {

// Between two comparisons of the ranks, besides those at the ends of epochs.
constexpr int64_t kStepsPerComparison = 100;

bool Every(int64_t steps, int64_t step) { return steps > 0 && step % steps == 0; }

class Run {
 public:
  // What was found out before the run: how the recipe came by its precision, and where the run that
  // it resumes cut the model, on rank 0.
  struct Before {
    std::string precision, cut;
  };
  // `recipe` is for so many ranks and has a precision.
  Run(const Recipe& recipe, Before before, torch::Device device, const TrainerContext& context)
      : recipe_(recipe),
        before_(std::move(before)),
        device_(device),
        context_(context),
        bf16_(recipe.precision == "bf16"),
        timeout_(absl::Seconds(recipe.step_timeout)),
        output_(recipe, context, parts_) {}

  absl::Status Prepare(std::unique_ptr<comm::Communicator> communicator);
  absl::StatusOr<Outcome> ToTheEnd();
  // Says how it ended; what ended it is the result.
  absl::StatusOr<Outcome> Ended(absl::StatusOr<Outcome> outcome);

 private:
  absl::StatusOr<bool> Step();  // true: stop
  absl::StatusOr<parallel::StepResult> StepOf(const data::Batch& batch, double learning_rate);
  torch::Tensor TargetsOf(const data::Batch& batch) const;
  bool MustSettle(bool stop) const;
  absl::StatusOr<bool> Settle();
  absl::Status AfterStep();
  bool EvaluationIsDue() const;
  absl::Status EvaluateNow();
  absl::Status SaveCheckpoint(CheckpointSaver::Need need);
  absl::Status Annotated(const absl::Status& status, int64_t good) const;
  base::Deadline Soon() const { return base::Deadline::After(timeout_); }

  int64_t steps_per_epoch() const { return parts_.input.train->steps_per_epoch(); }
  RunState State() {
    return {parts_.strategy->model(),
            *parts_.optimizer,
            outcome_.step,
            evaluated_,
            best_,
            *parts_.input.train_images,
            parts_.strategy->world_size(),
            parts_.strategy->buckets(),
            residual_,
            parts_.plan ? parallel::CutText(parts_.plan->cut, parts_.plan->layers) : ""};
  }

  const Recipe& recipe_;
  const Before before_;
  const torch::Device device_;
  const TrainerContext& context_;
  const bool bf16_;
  const absl::Duration timeout_;
  Parts parts_;
  RunOutput output_;
  std::vector<torch::Tensor> residual_;  // by compressed gradients, at the last checkpoint
  Outcome outcome_;
  double best_ = kNoneYet;  // first metric of an evaluation of this run
  bool evaluated_ = false;  // the state after the last step was, maybe before a resume
  std::optional<Evaluation> evaluation_;  // if so by this process
};

absl::Status Run::Prepare(std::unique_ptr<comm::Communicator> communicator) {
  TUTTI_ASSIGN_OR_RETURN(
      parts_, MakeParts(recipe_, output_.timeline().Watch(std::move(communicator)), device_,
                        {output_.timeline().WatchPasses(), {context_.free_memory, before_.cut}}));
  TUTTI_RETURN_IF_ERROR(CheckSameImages(parts_.input, *parts_.strategy, timeout_));
  if (recipe_.compression != "none") {
    for (const auto& bucket : parts_.strategy->buckets()) {
      residual_.push_back(torch::zeros_like(bucket->values()));
    }
  }
  RunState state = State();
  TUTTI_ASSIGN_OR_RETURN(const Resumed resumed,
                         BeginOrResume(recipe_, *parts_.strategy, state, timeout_));
  TUTTI_RETURN_IF_ERROR(output_.Open(resumed, before_.precision, outcome_.step));
  const int64_t step = outcome_.step;
  parts_.input.train->Seek(step / steps_per_epoch(), step % steps_per_epoch());
  // Whoever stopped the run after an epoch's last step did not wait for its evaluation.
  return step > 0 && !evaluated_ && EvaluationIsDue() ? EvaluateNow() : absl::OkStatus();
}

absl::StatusOr<Outcome> Run::ToTheEnd() {
  TUTTI_RETURN_IF_ERROR(output_.timeline().Begin(*parts_.strategy, Soon()));
  while (outcome_.step < parts_.schedule.total_steps) {
    TUTTI_ASSIGN_OR_RETURN(const bool stop, Step());
    if (context_.step_done) context_.step_done(outcome_.step);
    if (stop && outcome_.step < parts_.schedule.total_steps) {
      outcome_.stopped = true;
      TUTTI_RETURN_IF_ERROR(output_.ReportUnreadable(outcome_.step));
      TUTTI_RETURN_IF_ERROR(SaveCheckpoint(CheckpointSaver::Need::kLast));
      TUTTI_RETURN_IF_ERROR(output_.WriteTrace());
      return std::move(outcome_);
    }
    TUTTI_RETURN_IF_ERROR(AfterStep());
  }
  if (!evaluation_) TUTTI_RETURN_IF_ERROR(EvaluateNow());
  outcome_.metrics = evaluation_->metrics;
  TUTTI_RETURN_IF_ERROR(output_.Finish(outcome_.meter, *evaluation_));
  return std::move(outcome_);
}

absl::StatusOr<Outcome> Run::Ended(absl::StatusOr<Outcome> outcome) {
  output_.Ended(outcome.status(), outcome.ok() && outcome->stopped);
  return outcome;
}

// Load, forward and backward, step; how long each took.
absl::StatusOr<bool> Run::Step() {
  evaluation_.reset();
  evaluated_ = false;
  if (context_.stop_wanted && context_.stop_wanted()) parts_.strategy->RequestStop();
  Timeline& timeline = output_.timeline();
  StepParts times;
  times.other = timeline.Lap();

  const auto batch = parts_.input.train->Next(Soon());
  if (!batch.ok()) return Annotated(batch.status(), outcome_.step);
  times.data = timeline.Lap();

  const double learning_rate = parts_.schedule.LearningRate(outcome_.step);
  TUTTI_ASSIGN_OR_RETURN(const auto result, StepOf(*batch, learning_rate));
  times.backward = result.times.backward;
  times.communication = result.times.communication;
  times.optimizer = result.times.update;
  times.forward = timeline.Lap() - times.backward - times.communication - times.optimizer;

  ++outcome_.step;
  outcome_.meter.Add(times, result.loss, result.count);
  timeline.AddStep(outcome_.step, times);
  bool stop = result.stop;
  if (MustSettle(stop)) {
    TUTTI_ASSIGN_OR_RETURN(const bool late, Settle());
    stop |= late;
  }
  output_.report().Stepped(outcome_.meter, outcome_.step, learning_rate,
                           outcome_.step % steps_per_epoch() == 0);
  return stop;
}

absl::StatusOr<parallel::StepResult> Run::StepOf(const data::Batch& batch, double learning_rate) {
  // Of dropout. The generator takes 32 bits, which the factor spreads ranks over.
  constexpr uint64_t kApart = 2654435761;
  torch::manual_seed(static_cast<uint64_t>(recipe_.seed) + static_cast<uint64_t>(outcome_.step) +
                     static_cast<uint64_t>(parts_.strategy->rank()) * kApart);
  auto result = parts_.strategy->Step(
      {ImagesOf(batch, parts_.input.evaluation, bf16_), TargetsOf(batch)},
      [&] { parts_.optimizer->Step(learning_rate); }, Soon());
  if (!result.ok()) {
    const int64_t begun = outcome_.step + 1;
    return Annotated(result.status(), begun - std::max<int64_t>(parts_.strategy->outstanding(), 1));
  }
  return result;
}

torch::Tensor Run::TargetsOf(const data::Batch& batch) const {
  if (recipe_.mixup > 0 || recipe_.cutmix > 0) {
    const auto classes = static_cast<int64_t>(parts_.input.train_images->classes().size());
    return MixedLabelsOf(batch, classes);
  }
  return parts_.task->Targets(AnnotationsOf(batch, parts_.input.evaluation));
}

bool Run::MustSettle(bool stop) const {
  return stop || outcome_.step == parts_.schedule.total_steps ||
         Every(steps_per_epoch(), outcome_.step) ||
         Every(recipe_.checkpoint_every_steps, outcome_.step);
}

// Whether some rank asked to stop.
absl::StatusOr<bool> Run::Settle() {
  const auto late = parts_.strategy->Settle(Soon());
  if (!late.ok()) {
    return Annotated(late.status(), outcome_.step - parts_.strategy->outstanding());
  }
  outcome_.meter.AddLate(late->loss, late->count);
  return late->stop;
}

// The step after the first `good` ones is at fault.
absl::Status Run::Annotated(const absl::Status& status, int64_t good) const {
  return base::Annotate(
      status, absl::StrCat("step ", good + 1, " (epoch ", good / steps_per_epoch() + 1, ")"));
}

absl::Status Run::AfterStep() {
  const bool end_of_epoch = Every(steps_per_epoch(), outcome_.step);
  if (Every(kStepsPerComparison, outcome_.step) || end_of_epoch) {
    TUTTI_RETURN_IF_ERROR(output_.CompareRanks(outcome_.step, outcome_.meter));
  }
  if (EvaluationIsDue()) {
    TUTTI_RETURN_IF_ERROR(EvaluateNow());
  } else if (end_of_epoch) {
    TUTTI_RETURN_IF_ERROR(output_.ReportUnreadable(outcome_.step));
  }
  const bool due = Every(recipe_.checkpoint_every * steps_per_epoch(), outcome_.step) ||
                   Every(recipe_.checkpoint_every_steps, outcome_.step);
  return due ? SaveCheckpoint(CheckpointSaver::Need::kPeriodic) : absl::OkStatus();
}

bool Run::EvaluationIsDue() const {
  return Every(recipe_.evaluate_every * steps_per_epoch(), outcome_.step);
}

absl::Status Run::EvaluateNow() {
  parts_.optimizer->SwapWeights();
  TUTTI_ASSIGN_OR_RETURN(evaluation_, Evaluate(*parts_.task, *parts_.strategy, *parts_.input.test,
                                               {.augmentation = parts_.input.evaluation,
                                                .bf16 = bf16_,
                                                .mirrored = recipe_.evaluate_mirrored,
                                                .timeout = timeout_}));
  TUTTI_RETURN_IF_ERROR(output_.KeepIfBest(*evaluation_, outcome_.step, best_));
  parts_.optimizer->SwapWeights();
  evaluated_ = true;
  TUTTI_RETURN_IF_ERROR(output_.ReportUnreadable(outcome_.step));
  output_.timeline().Leave(SpanKind::kEvaluation, outcome_.step);
  output_.report().Evaluated(outcome_.step, evaluation_->metrics, evaluation_->loss,
                             evaluation_->images);
  return absl::OkStatus();
}

absl::Status Run::SaveCheckpoint(CheckpointSaver::Need need) {
  TUTTI_ASSIGN_OR_RETURN(residual_, parts_.strategy->SettleResidual(Soon()));
  return output_.SaveCheckpoint(State(), need);
}

}  // namespace

absl::StatusOr<Outcome> Train(const Recipe& asked, std::unique_ptr<comm::Communicator> communicator,
                              const TrainerContext& context) {
  TUTTI_RETURN_IF_ERROR(Validate(asked));
  TUTTI_ASSIGN_OR_RETURN(const parallel::Layout layout,
                         parallel::LayOut(asked.mesh, communicator->rank(), communicator->size()));
  Recipe recipe = ForRanks(asked, layout.replicas);
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(recipe.device));
  PrepareMachine(recipe.threads, device.is_cuda());
  const TakenBefore before = layout.reports() ? TakenToResume(recipe) : TakenBefore{};
  const auto deadline = base::Deadline::After(absl::Seconds(recipe.step_timeout));
  TUTTI_ASSIGN_OR_RETURN(PrecisionTaken taken, TakePrecision(recipe.precision, before.precision,
                                                             device, *communicator, deadline));
  recipe.precision = taken.precision;
  // Products that were taken in another precision say nothing of this one's.
  const std::optional<bool> kept =
      before.precision == taken.precision ? before.winograd : std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(recipe.winograd, TakeWinograd(recipe, kept, *communicator, deadline));
  TUTTI_RETURN_IF_ERROR(CheckSameRecipe(recipe, *communicator, deadline));
  Run run(recipe, {std::move(taken.why), before.cut}, device, context);
  const absl::Status prepared = run.Prepare(std::move(communicator));
  return run.Ended(prepared.ok() ? run.ToTheEnd() : prepared);
}

}  // namespace tutti::train
