#include "runtime/train/run_output.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/comm/communicator.h"
#include "runtime/train/gather_measurements.h"
#include "runtime/train/whole_state.h"

namespace tutti::train {
namespace {

// Between lines about steps in a job, whose followers draw a bar from the metrics.
constexpr absl::Duration kLineEveryInAJob = absl::Seconds(20);

}  // namespace

RunOutput::RunOutput(const Recipe& recipe, const TrainerContext& context, Parts& parts)
    : recipe_(recipe),
      context_(context),
      parts_(parts),
      timeout_(absl::Seconds(recipe.step_timeout)),
      timeline_(recipe.trace),
      saver_(recipe) {}

// Who is told of the run, on rank 0.
ReportSinks RunOutput::SinksOf() const {
  ReportSinks sinks;
  sinks.metrics = {std::filesystem::path(recipe_.output) / "metrics.jsonl"};
  sinks.out = context_.out;
  sinks.terminal = context_.terminal;
  sinks.tensorboard = recipe_.tensorboard;
  sinks.mlflow = context_.mlflow;
  if (!recipe_.mlflow.empty()) sinks.mlflow.store = recipe_.mlflow;
  if (!context_.metrics_file.empty()) {
    sinks.metrics.push_back(context_.metrics_file);
    sinks.line_every = kLineEveryInAJob;
  }
  return sinks;
}

absl::Status RunOutput::Open(const Resumed& resumed, const std::string& precision_reason,
                             int64_t step) {
  ReportSinks sinks;
  if (leads()) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(recipe_.output));
    TUTTI_RETURN_IF_ERROR(timeline_.Open());
    sinks = SinksOf();
  }
  TUTTI_ASSIGN_OR_RETURN(report_, RunReport::Open(recipe_, sinks, clock_));
  TUTTI_RETURN_IF_ERROR(report_->Started(FactsOf(parts_), step));
  if (!precision_reason.empty()) report_->Note(precision_reason);
  if (sinks.mlflow.store.empty() && !sinks.mlflow.elsewhere.empty()) {
    report_->Warn(absl::StrCat("MLflow is told nothing: MLFLOW_TRACKING_URI begins with ",
                               sinks.mlflow.elsewhere,
                               ", and only folders are written to (--mlflow FOLDER)"));
  }
  if (!parts_.plan.empty()) report_->Note(parts_.plan);
  for (const std::string& warning : resumed.warnings) report_->Warn(warning);
  if (resumed.resumed) {
    report_->Note(absl::StrCat("resumed after step ", step, " from ", resumed.path));
    return absl::OkStatus();
  }
  if (recipe_.resume != "no") report_->Note("no checkpoint to resume from: from the start");
  if (!parts_.beginning.empty()) report_->Note(parts_.beginning);
  return absl::OkStatus();
}

absl::Status RunOutput::CompareRanks(int64_t step, const Meter& meter) {
  const int64_t steps = meter.total_steps() - compared_steps_;
  const StepParts total = meter.total();
  // Ranks that take turns may have had none.
  const auto divisor = static_cast<double>(std::max<int64_t>(steps, 1));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<StepParts> ranks,
                         GatherParts((total - compared_) / divisor, *parts_.strategy, Soon()));
  TUTTI_ASSIGN_OR_RETURN(const auto figures, GatherFigures(*parts_.strategy, Soon()));
  compared_ = total;
  compared_steps_ += steps;
  report_->RanksCompared(step, steps, ranks, figures);
  return absl::OkStatus();
}

absl::Status RunOutput::ReportUnreadable(int64_t step) {
  const int64_t here = parts_.train->unreadable() + parts_.test->unreadable();
  std::array<double, 1> images = {static_cast<double>(here)};
  TUTTI_RETURN_IF_ERROR(parts_.strategy->SumOverRanks(images, Soon()));
  report_->Unreadable(step, static_cast<int64_t>(images[0]));
  return absl::OkStatus();
}

absl::Status RunOutput::SaveCheckpoint(const RunProgress& progress, CheckpointSaver::Need need) {
  const auto save = [&](WholeSources sources) {
    return saver_.Save({progress.step, std::move(sources.model), std::move(sources.run),
                        DescribeRun(recipe_, parts_, progress)},
                       need, *report_, timeline_);
  };
  return WriteWhole(*parts_.strategy, StateOf(parts_), timeout_, save);
}

// The metrics are the same on every rank, and so is what each takes for the best.
absl::Status RunOutput::KeepIfBest(const Evaluation& evaluation, int64_t step, double& best) {
  const double metric = evaluation.metrics.at(0).value;
  if (!recipe_.keep_best || !(metric > best)) return absl::OkStatus();
  best_kept_ = base::Annotate(
      WriteModel("best"), absl::StrCat("the best model so far, of step ", step, ", was not kept"));
  if (comm::LostRank(best_kept_)) return best_kept_;
  if (!best_kept_.ok()) report_->Warn(best_kept_.message());
  std::array<double, 1> failures = {best_kept_.ok() ? 0.0 : 1.0};
  TUTTI_RETURN_IF_ERROR(parts_.strategy->SumOverRanks(failures, Soon()));
  if (failures[0] == 0) best = metric;
  return absl::OkStatus();
}

absl::Status RunOutput::Finish(const Meter& meter, const Evaluation& evaluation) {
  TUTTI_RETURN_IF_ERROR(SaveModel());
  const auto steps = static_cast<double>(std::max<int64_t>(meter.total_steps(), 1));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<StepParts> ranks,
                         GatherParts(meter.total() / steps, *parts_.strategy, Soon()));
  report_->Finished(meter, ranks, evaluation.metrics, evaluation.images,
                    std::filesystem::path(recipe_.output) / "model");
  TUTTI_RETURN_IF_ERROR(WriteTrace());
  return best_kept_;
}

void RunOutput::Ended(const absl::Status& status, bool stopped) {
  if (report_) report_->Ended(status, stopped);
}

absl::Status RunOutput::SaveModel() {
  parts_.strategy->SwapWeights();
  const absl::Status written = WriteModel("model");
  parts_.strategy->SwapWeights();
  return written;
}

absl::Status RunOutput::WriteModel(const char* name) {
  const auto write = [&](WholeSources sources) -> absl::Status {
    checkpoint::TensorSources& tensors = sources.model;
    checkpoint::ModelFolder folder = MakeModelFolder(recipe_, parts_);
    if (WantsTorchScript(recipe_, parts_)) {
      for (const std::string& tensor : checkpoint::FileOrder(tensors)) {
        TUTTI_ASSIGN_OR_RETURN(folder.tensors[tensor], tensors.at(tensor).get());
      }
      folder.torchscript = TorchScriptOf(recipe_, parts_, folder.tensors);
      tensors = checkpoint::SourcesOf(folder.tensors);
    }
    return checkpoint::WriteModelFolder(std::filesystem::path(recipe_.output) / name, folder,
                                        tensors);
  };
  parallel::State model = parts_.strategy->state();
  std::erase_if(model, [](const parallel::StateTensor& each) {
    return each.part != parallel::StateTensor::Part::kModel;
  });
  return WriteWhole(*parts_.strategy, model, timeout_, write);
}

}  // namespace tutti::train
