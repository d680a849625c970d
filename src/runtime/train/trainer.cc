#include "runtime/train/trainer.h"

#include <torch/torch.h>

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/models/model.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/input.h"
#include "runtime/train/machine.h"
#include "runtime/train/parts.h"
#include "runtime/train/report/run_report.h"
#include "runtime/train/run_state.h"

namespace tutti::train {
namespace {

using SteadyClock = std::chrono::steady_clock;

double Lap(SteadyClock::time_point& since) {
  const auto now = SteadyClock::now();
  const double seconds = std::chrono::duration<double>(now - since).count();
  since = now;
  return seconds;
}

class Run {
 public:
  Run(const Recipe& recipe, const Surroundings& surroundings)
      : recipe_(recipe),
        surroundings_(surroundings),
        bf16_(recipe.precision == "bf16"),
        timeout_(absl::Seconds(recipe.step_timeout)) {}

  absl::Status Prepare(std::unique_ptr<comm::Communicator> communicator);
  absl::StatusOr<Outcome> ToTheEnd();

 private:
  absl::Status OpenReport();
  absl::Status Begin();
  RunFacts Facts() const;
  absl::StatusOr<bool> Step();  // true: stop
  absl::Status AfterStep();
  absl::Status EvaluateNow();
  absl::Status SaveCheckpoint();
  absl::Status SaveModel();
  absl::Status Annotated(const absl::Status& status) const;

  bool leads() const { return strategy_->rank() == 0; }
  int64_t steps_per_epoch() const { return input_.train->steps_per_epoch(); }
  RunState State() {
    return {model_, *optimizer_, outcome_.step, input_.train_images->size(),
            strategy_->world_size()};
  }

  const Recipe& recipe_;
  const Surroundings& surroundings_;
  const bool bf16_;
  const absl::Duration timeout_;
  const base::SystemClock clock_;
  Input input_;
  models::Model model_;
  std::unique_ptr<parallel::Strategy> strategy_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<RunReport> report_;
  Schedule schedule_;
  Outcome outcome_;
  std::optional<Evaluation> evaluation_;  // of the state after the last step, if made
};

absl::Status Run::Prepare(std::unique_ptr<comm::Communicator> communicator) {
  const int rank = communicator->rank(), size = communicator->size();
  const models::ModelSpec unknown_classes{recipe_.model};
  TUTTI_RETURN_IF_ERROR(models::MakeModel(unknown_classes, 1).status());
  TUTTI_ASSIGN_OR_RETURN(input_, OpenInput(recipe_, models::InputSize(recipe_.model), rank, size));
  const auto classes = static_cast<int64_t>(input_.train_images->classes().size());
  TUTTI_ASSIGN_OR_RETURN(
      model_, models::MakeModel({recipe_.model, classes}, static_cast<uint64_t>(recipe_.seed)));
  TUTTI_ASSIGN_OR_RETURN(strategy_, MakeStrategy(recipe_, model_, std::move(communicator)));
  optimizer_ = MakeOptimizer(recipe_, *strategy_);
  schedule_ = MakeSchedule(recipe_, steps_per_epoch());
  TUTTI_RETURN_IF_ERROR(OpenReport());
  return Begin();
}

absl::Status Run::OpenReport() {
  std::vector<std::filesystem::path> metrics;
  if (leads()) {
    const std::filesystem::path output = recipe_.output;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(output));
    metrics.push_back(output / "metrics.jsonl");
    if (!surroundings_.metrics_file.empty()) metrics.push_back(surroundings_.metrics_file);
  }
  TUTTI_ASSIGN_OR_RETURN(report_,
                         RunReport::Open(recipe_, metrics, leads() ? surroundings_.out : nullptr,
                                         surroundings_.terminal, clock_));
  return absl::OkStatus();
}

absl::Status Run::Begin() {
  RunState state = State();
  TUTTI_ASSIGN_OR_RETURN(const Resumed resumed,
                         BeginOrResume(recipe_, *strategy_, state, timeout_));
  const int64_t step = outcome_.step;
  TUTTI_RETURN_IF_ERROR(report_->Started(Facts(), step));
  for (const std::string& warning : resumed.warnings) {
    report_->Note(absl::StrCat("warning: ", warning));
  }
  if (resumed.resumed) {
    report_->Note(absl::StrCat("resumed after step ", step, " from ", resumed.path));
  } else if (recipe_.resume != "no") {
    report_->Note("no checkpoint to resume from: from the start");
  }
  input_.train->Seek(step / steps_per_epoch(), step % steps_per_epoch());
  return absl::OkStatus();
}

RunFacts Run::Facts() const {
  RunFacts facts;
  for (const torch::Tensor& parameter : model_->parameters()) facts.parameters += parameter.numel();
  facts.classes = static_cast<int64_t>(input_.train_images->classes().size());
  facts.train_images = input_.train_images->size();
  facts.test_images = input_.test_images->size();
  facts.steps = schedule_.total_steps;
  facts.steps_per_epoch = steps_per_epoch();
  facts.world_size = strategy_->world_size();
  facts.threads = at::get_num_threads();
  return facts;
}

absl::StatusOr<Outcome> Run::ToTheEnd() {
  while (outcome_.step < schedule_.total_steps) {
    TUTTI_ASSIGN_OR_RETURN(const bool stop, Step());
    if (surroundings_.step_done) surroundings_.step_done(outcome_.step);
    if (stop && outcome_.step < schedule_.total_steps) {
      outcome_.stopped = true;
      TUTTI_RETURN_IF_ERROR(SaveCheckpoint());
      return std::move(outcome_);
    }
    TUTTI_RETURN_IF_ERROR(AfterStep());
  }
  if (!evaluation_) TUTTI_RETURN_IF_ERROR(EvaluateNow());
  TUTTI_RETURN_IF_ERROR(SaveModel());
  outcome_.top1 = evaluation_->top1;
  outcome_.top5 = evaluation_->top5;
  TUTTI_RETURN_IF_ERROR(report_->Finished(outcome_.meter, outcome_.top1, outcome_.top5,
                                          evaluation_->images,
                                          (std::filesystem::path(recipe_.output) / "model")));
  return std::move(outcome_);
}

absl::StatusOr<bool> Run::Step() {
  evaluation_.reset();
  if (surroundings_.stop_wanted && surroundings_.stop_wanted()) strategy_->RequestStop();
  auto clock = SteadyClock::now();
  StepParts parts;
  const auto batch = input_.train->Next(base::Deadline::After(timeout_));
  if (!batch.ok()) return Annotated(batch.status());
  parts.data = Lap(clock);

  torch::manual_seed(static_cast<uint64_t>(recipe_.seed) + static_cast<uint64_t>(outcome_.step));
  const auto result = strategy_->Step(ImagesOf(*batch, input_.evaluation, bf16_), LabelsOf(*batch),
                                      base::Deadline::After(timeout_));
  if (!result.ok()) return Annotated(result.status());
  parts.backward = result->times.backward;
  parts.communication = result->times.communication;
  parts.forward = Lap(clock) - parts.backward - parts.communication;

  const double learning_rate = schedule_.LearningRate(outcome_.step);
  optimizer_->Step(learning_rate);
  parts.optimizer = Lap(clock);
  ++outcome_.step;
  outcome_.meter.Add(parts, result->loss, result->count);
  TUTTI_RETURN_IF_ERROR(report_->Stepped(outcome_.meter, outcome_.step, learning_rate,
                                         outcome_.step % steps_per_epoch() == 0));
  return result->stop;
}

absl::Status Run::Annotated(const absl::Status& status) const {
  return base::Annotate(status, absl::StrCat("step ", outcome_.step + 1, " (epoch ",
                                             outcome_.step / steps_per_epoch() + 1, ")"));
}

absl::Status Run::AfterStep() {
  const int64_t step = outcome_.step;
  const bool epoch_ends = step % steps_per_epoch() == 0;
  const int64_t epoch = step / steps_per_epoch();
  const auto due = [](int64_t count, int64_t every) { return every > 0 && count % every == 0; };
  if (epoch_ends && (due(epoch, recipe_.evaluate_every) || step == schedule_.total_steps)) {
    TUTTI_RETURN_IF_ERROR(EvaluateNow());
  }
  if ((epoch_ends && due(epoch, recipe_.checkpoint_every)) ||
      due(step, recipe_.checkpoint_every_steps)) {
    return SaveCheckpoint();
  }
  return absl::OkStatus();
}

absl::Status Run::EvaluateNow() {
  TUTTI_ASSIGN_OR_RETURN(evaluation_,
                         Evaluate(*strategy_, *input_.test, input_.evaluation, bf16_, timeout_));
  return report_->Evaluated(outcome_.step, evaluation_->top1, evaluation_->top5, evaluation_->loss,
                            evaluation_->images);
}

absl::Status Run::SaveCheckpoint() {
  if (!leads()) return absl::OkStatus();
  auto clock = SteadyClock::now();
  checkpoint::CheckpointFolder folder(std::filesystem::path(recipe_.output) / "checkpoints",
                                      static_cast<int>(recipe_.keep_checkpoints));
  TUTTI_ASSIGN_OR_RETURN(const auto saved, folder.Save(Capture(State(), recipe_)));
  return report_->Checkpointed(outcome_.step, saved.path, saved.bytes, Lap(clock));
}

absl::Status Run::SaveModel() {
  if (!leads()) return absl::OkStatus();
  return checkpoint::WriteModelFolder(std::filesystem::path(recipe_.output) / "model",
                                      MakeModelFolder(recipe_, model_, input_));
}

}  // namespace

absl::StatusOr<Outcome> Train(const Recipe& recipe,
                              std::unique_ptr<comm::Communicator> communicator,
                              const Surroundings& surroundings) {
  TUTTI_RETURN_IF_ERROR(Validate(recipe));
  PrepareMachine(recipe.threads);
  Run run(recipe, surroundings);
  TUTTI_RETURN_IF_ERROR(run.Prepare(std::move(communicator)));
  return run.ToTheEnd();
}

}  // namespace tutti::train
