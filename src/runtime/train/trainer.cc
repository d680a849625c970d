#include "runtime/train/trainer.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/device/device.h"
#include "runtime/train/batch_tensors.h"
#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/gather.h"
#include "runtime/train/report/run_report.h"
#include "runtime/train/run_state.h"
#include "runtime/train/setup/agreement.h"
#include "runtime/train/setup/machine.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/run_parts.h"
#include "runtime/train/timeline.h"

namespace tutti::train {
namespace {

// Between lines about steps in a job, whose followers draw a bar from the metrics.
constexpr absl::Duration kLineEveryInAJob = absl::Seconds(20);

// Between two comparisons of the ranks, besides those at the ends of epochs.
constexpr int64_t kStepsPerComparison = 100;

bool Every(int64_t steps, int64_t step) { return steps > 0 && step % steps == 0; }

class Run {
 public:
  // `recipe` is for so many ranks and has a precision; `taken` says how it came by that.
  Run(const Recipe& recipe, std::string taken, torch::Device device,
      const Surroundings& surroundings)
      : recipe_(recipe),
        taken_(std::move(taken)),
        device_(device),
        surroundings_(surroundings),
        bf16_(recipe.precision == "bf16"),
        timeout_(absl::Seconds(recipe.step_timeout)),
        timeline_(recipe.trace),
        saver_(recipe) {}

  absl::Status Prepare(std::unique_ptr<comm::Communicator> communicator);
  absl::StatusOr<Outcome> ToTheEnd();
  // Says how it ended, where a report was begun; what ended it is the result.
  absl::StatusOr<Outcome> Ended(absl::StatusOr<Outcome> outcome);

 private:
  absl::Status OpenReport(const Resumed& resumed);
  absl::StatusOr<bool> Step();  // true: stop
  torch::Tensor TargetsOf(const data::Batch& batch) const;
  bool MustSettle(bool stop) const;
  absl::StatusOr<bool> Settle();
  absl::Status AfterStep();
  absl::Status CompareRanks();
  bool EvaluationIsDue() const;
  absl::Status EvaluateNow();
  absl::Status ReportUnreadable();
  absl::Status SaveCheckpoint(CheckpointSaver::Need need);
  absl::Status SaveModel();
  absl::Status WriteModel(const char* name);
  void KeepIfBest();
  absl::Status Annotated(const absl::Status& status, int64_t good) const;
  base::Deadline Soon() const { return base::Deadline::After(timeout_); }

  bool leads() const { return parts_.strategy->rank() == 0; }
  int64_t steps_per_epoch() const { return parts_.input.train->steps_per_epoch(); }
  RunState State() {
    return {parts_.model,
            *parts_.optimizer,
            outcome_.step,
            evaluated_,
            best_,
            *parts_.input.train_images,
            parts_.strategy->world_size(),
            parts_.strategy->buckets(),
            residual_};
  }

  const Recipe& recipe_;
  const std::string taken_;
  const torch::Device device_;
  const Surroundings& surroundings_;
  const bool bf16_;
  const absl::Duration timeout_;
  const base::SystemClock clock_;
  Parts parts_;
  std::unique_ptr<RunReport> report_;
  Timeline timeline_;
  StepParts compared_;  // up to the last comparison of the ranks
  int64_t compared_steps_ = 0;
  std::vector<torch::Tensor> residual_;  // by compressed gradients, at the last checkpoint
  Outcome outcome_;
  CheckpointSaver saver_;
  double best_ = kNoneYet;  // first metric of an evaluation of this run
  absl::Status best_kept_;  // on rank 0: why a better one than that was not
  bool evaluated_ = false;  // the state after the last step was, maybe before a resume
  std::optional<Evaluation> evaluation_;  // if so by this process
};

absl::Status Run::Prepare(std::unique_ptr<comm::Communicator> communicator) {
  TUTTI_ASSIGN_OR_RETURN(parts_,
                         MakeParts(recipe_, timeline_.Watch(std::move(communicator)), device_));
  TUTTI_RETURN_IF_ERROR(CheckAgreement(recipe_, parts_.input, *parts_.strategy, timeout_));
  if (recipe_.compression != "none") {
    for (const auto& bucket : parts_.strategy->buckets()) {
      residual_.push_back(torch::zeros_like(bucket->values()));
    }
  }
  RunState state = State();
  TUTTI_ASSIGN_OR_RETURN(const Resumed resumed,
                         BeginOrResume(recipe_, *parts_.strategy, state, timeout_));
  TUTTI_RETURN_IF_ERROR(OpenReport(resumed));
  const int64_t step = outcome_.step;
  parts_.input.train->Seek(step / steps_per_epoch(), step % steps_per_epoch());
  // Whoever stopped the run after an epoch's last step did not wait for its evaluation.
  return step > 0 && !evaluated_ && EvaluationIsDue() ? EvaluateNow() : absl::OkStatus();
}

absl::Status Run::OpenReport(const Resumed& resumed) {
  Readers readers;
  if (leads()) {
    const std::filesystem::path output = recipe_.output;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(output));
    TUTTI_RETURN_IF_ERROR(timeline_.Open());
    readers.metrics = {output / "metrics.jsonl"};
    readers.out = surroundings_.out;
    readers.terminal = surroundings_.terminal;
    readers.tensorboard = recipe_.tensorboard;
    readers.mlflow = surroundings_.mlflow;
    if (!recipe_.mlflow.empty()) readers.mlflow.store = recipe_.mlflow;
    if (!surroundings_.metrics_file.empty()) {
      readers.metrics.push_back(surroundings_.metrics_file);
      readers.line_every = kLineEveryInAJob;
    }
  }
  TUTTI_ASSIGN_OR_RETURN(report_, RunReport::Open(recipe_, readers, clock_));
  TUTTI_RETURN_IF_ERROR(report_->Started(FactsOf(parts_), outcome_.step));
  if (!taken_.empty()) report_->Note(taken_);
  if (readers.mlflow.store.empty() && !readers.mlflow.elsewhere.empty()) {
    report_->Warn(absl::StrCat("MLflow is told nothing: MLFLOW_TRACKING_URI begins with ",
                               readers.mlflow.elsewhere,
                               ", and only folders are written to (--mlflow FOLDER)"));
  }
  for (const std::string& warning : resumed.warnings) {
    report_->Warn(warning);
  }
  if (resumed.resumed) {
    report_->Note(absl::StrCat("resumed after step ", outcome_.step, " from ", resumed.path));
    return absl::OkStatus();
  }
  if (recipe_.resume != "no") report_->Note("no checkpoint to resume from: from the start");
  if (!parts_.beginning.empty()) report_->Note(parts_.beginning);
  return absl::OkStatus();
}

absl::StatusOr<Outcome> Run::ToTheEnd() {
  TUTTI_RETURN_IF_ERROR(timeline_.Begin(*parts_.strategy, Soon()));
  while (outcome_.step < parts_.schedule.total_steps) {
    TUTTI_ASSIGN_OR_RETURN(const bool stop, Step());
    if (surroundings_.step_done) surroundings_.step_done(outcome_.step);
    if (stop && outcome_.step < parts_.schedule.total_steps) {
      outcome_.stopped = true;
      TUTTI_RETURN_IF_ERROR(ReportUnreadable());
      TUTTI_RETURN_IF_ERROR(SaveCheckpoint(CheckpointSaver::Need::kLast));
      TUTTI_RETURN_IF_ERROR(timeline_.Write(*parts_.strategy, Soon()));
      return std::move(outcome_);
    }
    TUTTI_RETURN_IF_ERROR(AfterStep());
  }
  if (!evaluation_) TUTTI_RETURN_IF_ERROR(EvaluateNow());
  TUTTI_RETURN_IF_ERROR(SaveModel());
  const auto steps = static_cast<double>(std::max<int64_t>(outcome_.meter.total_steps(), 1));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<StepParts> ranks,
                         GatherParts(outcome_.meter.total() / steps, *parts_.strategy, Soon()));
  outcome_.metrics = evaluation_->metrics;
  report_->Finished(outcome_.meter, ranks, outcome_.metrics, evaluation_->images,
                    std::filesystem::path(recipe_.output) / "model");
  TUTTI_RETURN_IF_ERROR(timeline_.Write(*parts_.strategy, Soon()));
  TUTTI_RETURN_IF_ERROR(best_kept_);
  return std::move(outcome_);
}

absl::StatusOr<Outcome> Run::Ended(absl::StatusOr<Outcome> outcome) {
  if (report_) report_->Ended(outcome.status(), outcome.ok() && outcome->stopped);
  return outcome;
}

absl::StatusOr<bool> Run::Step() {
  evaluation_.reset();
  evaluated_ = false;
  if (surroundings_.stop_wanted && surroundings_.stop_wanted()) parts_.strategy->RequestStop();
  StepParts times;
  times.other = timeline_.Lap();
  const auto batch = parts_.input.train->Next(Soon());
  if (!batch.ok()) return Annotated(batch.status(), outcome_.step);
  const torch::Tensor targets = TargetsOf(*batch);
  times.data = timeline_.Lap();

  torch::manual_seed(static_cast<uint64_t>(recipe_.seed) + static_cast<uint64_t>(outcome_.step) +
                     (static_cast<uint64_t>(parts_.strategy->rank()) << 40));  // of dropout
  const auto result =
      parts_.strategy->Step(ImagesOf(*batch, parts_.input.evaluation, bf16_), targets, Soon());
  if (!result.ok()) {
    const int64_t begun = outcome_.step + 1;
    return Annotated(result.status(), begun - std::max<int64_t>(parts_.strategy->outstanding(), 1));
  }
  times.backward = result->times.backward;
  times.communication = result->times.communication;
  times.forward = timeline_.Lap() - times.backward - times.communication;

  const double learning_rate = parts_.schedule.LearningRate(outcome_.step);
  parts_.optimizer->Step(learning_rate);
  times.optimizer = timeline_.Lap();
  ++outcome_.step;
  outcome_.meter.Add(times, result->loss, result->count);
  timeline_.AddStep(outcome_.step, times);
  bool stop = result->stop;
  if (MustSettle(stop)) {
    TUTTI_ASSIGN_OR_RETURN(const bool late, Settle());
    stop |= late;
  }
  report_->Stepped(outcome_.meter, outcome_.step, learning_rate,
                   outcome_.step % steps_per_epoch() == 0);
  return stop;
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

absl::Status Run::CompareRanks() {
  const int64_t steps = outcome_.meter.total_steps() - compared_steps_;
  if (steps == 0) return absl::OkStatus();
  const StepParts total = outcome_.meter.total();
  TUTTI_ASSIGN_OR_RETURN(
      const std::vector<StepParts> ranks,
      GatherParts((total - compared_) / static_cast<double>(steps), *parts_.strategy, Soon()));
  compared_ = total;
  compared_steps_ += steps;
  report_->RanksCompared(outcome_.step, steps, ranks);
  return absl::OkStatus();
}

absl::Status Run::AfterStep() {
  const bool end_of_epoch = Every(steps_per_epoch(), outcome_.step);
  if (Every(kStepsPerComparison, outcome_.step) || end_of_epoch) {
    TUTTI_RETURN_IF_ERROR(CompareRanks());
  }
  if (EvaluationIsDue()) {
    TUTTI_RETURN_IF_ERROR(EvaluateNow());
  } else if (end_of_epoch) {
    TUTTI_RETURN_IF_ERROR(ReportUnreadable());
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
  KeepIfBest();
  parts_.optimizer->SwapWeights();
  evaluated_ = true;
  TUTTI_RETURN_IF_ERROR(ReportUnreadable());
  timeline_.Leave(SpanKind::kEvaluation, outcome_.step);
  report_->Evaluated(outcome_.step, evaluation_->metrics, evaluation_->loss, evaluation_->images);
  return absl::OkStatus();
}

absl::Status Run::ReportUnreadable() {
  const int64_t here = parts_.input.train->unreadable() + parts_.input.test->unreadable();
  std::array<double, 1> pictures = {static_cast<double>(here)};
  TUTTI_RETURN_IF_ERROR(parts_.strategy->SumOverRanks(pictures, Soon()));
  report_->Unreadable(outcome_.step, static_cast<int64_t>(pictures[0]));
  return absl::OkStatus();
}

absl::Status Run::SaveCheckpoint(CheckpointSaver::Need need) {
  TUTTI_ASSIGN_OR_RETURN(residual_, parts_.strategy->SettleResidual(Soon()));
  return leads() ? saver_.Save(State(), need, *report_, timeline_) : absl::OkStatus();
}

absl::Status Run::SaveModel() {
  if (!leads()) return absl::OkStatus();
  parts_.optimizer->SwapWeights();
  const absl::Status written = WriteModel("model");
  parts_.optimizer->SwapWeights();
  return written;
}

absl::Status Run::WriteModel(const char* name) {
  return checkpoint::WriteModelFolder(std::filesystem::path(recipe_.output) / name,
                                      MakeModelFolder(recipe_, parts_));
}

// As good is not better. The metrics are the same on every rank. One that could not be written does
// not end the training; at the end it is an error, unless a better one has been written since.
void Run::KeepIfBest() {
  const double metric = evaluation_->metrics.at(0).value;
  if (!recipe_.keep_best || !(metric > best_)) return;
  if (leads()) {
    best_kept_ = base::Annotate(WriteModel("best"), absl::StrCat("the best model so far, of step ",
                                                                 outcome_.step, ", was not kept"));
    if (!best_kept_.ok()) return report_->Warn(best_kept_.message());
  }
  best_ = metric;
}

}  // namespace

absl::StatusOr<Outcome> Train(const Recipe& asked, std::unique_ptr<comm::Communicator> communicator,
                              const Surroundings& surroundings) {
  TUTTI_RETURN_IF_ERROR(Validate(asked));
  Recipe recipe = ForRanks(asked, communicator->size());
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(recipe.device));
  PrepareMachine(recipe.threads, device.is_cuda());
  const std::string kept = communicator->rank() == 0 ? PrecisionToResume(recipe) : "";
  TUTTI_ASSIGN_OR_RETURN(PrecisionTaken taken,
                         TakePrecision(recipe.precision, kept, device, *communicator,
                                       base::Deadline::After(absl::Seconds(recipe.step_timeout))));
  recipe.precision = taken.precision;
  recipe.winograd = UsesWinograd(recipe);
  Run run(recipe, std::move(taken.why), device, surroundings);
  const absl::Status prepared = run.Prepare(std::move(communicator));
  return run.Ended(prepared.ok() ? run.ToTheEnd() : prepared);
}

}  // namespace tutti::train
