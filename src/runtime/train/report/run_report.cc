#include "runtime/train/report/run_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "runtime/train/report/ranks.h"

namespace tutti::train {
namespace {

constexpr absl::Duration kReportEvery = absl::Seconds(1);
constexpr size_t kRanksDrawn = 16;
constexpr int kTakenAgain = 4;  // reports in a row, more than there are kinds of files

// "data 12.0 %, forward 30.1 %, ..."
std::string DescribeShares(const StepParts& parts) {
  const double whole = std::max(parts.Sum(), 1e-9) / 100;
  std::vector<std::string> shares;
  for (const StepPart& part : kStepParts) {
    shares.push_back(absl::StrFormat("%s %.1f %%", part.name, parts.*part.seconds / whole));
  }
  return absl::StrJoin(shares, ", ");
}

// "top-1 71.2 %, top-5 93.0 %"
std::string DescribeMetrics(const std::vector<tasks::Metric>& metrics, absl::string_view between) {
  return absl::StrJoin(metrics, between, [](std::string* out, const tasks::Metric& metric) {
    absl::StrAppend(out, absl::StrFormat("%s %.1f %%", metric.title, 100 * metric.value));
  });
}

nlohmann::json WithMetrics(nlohmann::json line, const std::vector<tasks::Metric>& metrics) {
  for (const tasks::Metric& metric : metrics) line[metric.name] = metric.value;
  return line;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunReport>> RunReport::Open(const Recipe& recipe,
                                                           const ReportSinks& sinks,
                                                           const base::Clock& clock) {
  TUTTI_ASSIGN_OR_RETURN(MetricsFile file, MetricsFile::Open(sinks.metrics, clock));
  auto report = std::unique_ptr<RunReport>(new RunReport(recipe, std::move(file), sinks, clock));
  if (!sinks.tensorboard.empty()) {
    TUTTI_ASSIGN_OR_RETURN(report->events_, EventFile::Create(sinks.tensorboard, clock));
  }
  if (!sinks.mlflow.store.empty()) {
    TUTTI_ASSIGN_OR_RETURN(report->mlflow_, MlflowRun::Open(sinks.mlflow, recipe, clock));
  }
  return report;
}

RunReport::RunReport(const Recipe& recipe, MetricsFile metrics, const ReportSinks& sinks,
                     const base::Clock& clock)
    : recipe_(recipe),
      clock_(clock),
      metrics_(std::move(metrics)),
      progress_(sinks.out, sinks.terminal, sinks.line_every, clock),
      silent_(sinks.out == nullptr && !metrics_.writes() && sinks.tensorboard.empty() &&
              sinks.mlflow.store.empty()),
      gpu_libraries_(sinks.gpu_libraries) {}

absl::Status RunReport::Started(const RunFacts& facts, int64_t first_step) {
  facts_ = facts;
  first_step_ = first_step;
  began_ = last_ = clock_.Now();
  utilisation_.Begin(began_, ProcessorTime());
  if (silent_) return absl::OkStatus();
  if (facts.gpu >= 0) gpu_.emplace(facts.gpu, gpu_libraries_);
  progress_.Line(absl::StrFormat(
      "%s: %d parameters, %d classes; %d training and %d test images\n"
      "%d rank%s x %d thread%s%s, batch %d, %s, %d epoch%s of %d steps",
      recipe_.model, facts.parameters, facts.classes, facts.train_images, facts.test_images,
      facts.world_size, facts.world_size == 1 ? "" : "s", facts.threads,
      facts.threads == 1 ? "" : "s", facts.device == "cpu" ? "" : " and a GPU", recipe_.batch,
      recipe_.precision, recipe_.epochs, recipe_.epochs == 1 ? "" : "s", facts.steps_per_epoch));
  return metrics_.Write("start", {{"model", recipe_.model},
                                  {"task", facts.task},
                                  {"parameters", facts.parameters},
                                  {"classes", facts.classes},
                                  {"train_images", facts.train_images},
                                  {"test_images", facts.test_images},
                                  {"world_size", facts.world_size},
                                  {"global_batch", recipe_.batch},
                                  {"epochs", recipe_.epochs},
                                  {"steps", facts.steps},
                                  {"precision", recipe_.precision},
                                  {"device", facts.device},
                                  {"seed", recipe_.seed},
                                  {"recipe", FieldTexts(recipe_)}});
}

int64_t RunReport::EpochOf(int64_t step) const { return (step - 1) / facts_.steps_per_epoch + 1; }

double RunReport::SecondsLeft(int64_t step) const {
  const double seconds = absl::ToDoubleSeconds(clock_.Now() - began_);
  return seconds * static_cast<double>(facts_.steps - step) /
         static_cast<double>(std::max<int64_t>(step - first_step_, 1));
}

void RunReport::Stepped(Meter& meter, int64_t step, double learning_rate, bool last_of_epoch) {
  const bool due = last_of_epoch || (clock_.Now() >= last_ + kReportEvery && meter.has_images());
  if (silent_ || !due) return;
  last_ = clock_.Now();
  const Interval interval = meter.Take();
  const Position position{EpochOf(step), recipe_.epochs, step,
                          facts_.steps,  learning_rate,  SecondsLeft(step)};
  progress_.Step(position, interval);
  std::vector<Scalar> scalars = {{"loss", interval.loss},
                                 {"learning_rate", learning_rate},
                                 {"images_per_second", interval.images_per_second},
                                 {"processors", utilisation_.Take(last_, ProcessorTime())}};
  const GpuUse gpu = gpu_ ? gpu_->Read() : GpuUse{};
  if (gpu.busy) scalars.push_back({"gpu", *gpu.busy});
  if (gpu.memory) scalars.push_back({"gpu_memory", *gpu.memory});
  for (const StepPart& part : kStepParts) {
    scalars.push_back({std::string(part.name), interval.parts.*part.seconds});
  }
  nlohmann::json line = {{"epoch", position.epoch},
                         {"epochs", position.epochs},
                         {"step", step},
                         {"steps", position.steps},
                         {"seconds_left", position.seconds_left}};
  for (const Scalar& scalar : scalars) line[scalar.tag] = scalar.value;
  Plot(step, scalars);
  Write("step", std::move(line));
}

void RunReport::Warn(absl::string_view text) { Note(absl::StrCat("warning: ", text)); }

void RunReport::Plot(int64_t step, const std::vector<Scalar>& scalars) {
  if (events_) NoteWritten(events_->Write(step, scalars));
  if (mlflow_) NoteWritten(mlflow_->Write(step, scalars));
}

void RunReport::Write(absl::string_view event, nlohmann::json fields) {
  NoteWritten(metrics_.Write(event, std::move(fields)));
}

// The files may lie on several disks, of which one is full: what the others take is no news.
void RunReport::NoteWritten(const absl::Status& written) {
  if (!written.ok()) {
    taken_ = 0;
    if (lost_++ == 0) Warn(absl::StrCat("a report is missing from its file: ", written.message()));
  } else if (lost_ > 0 && ++taken_ == kTakenAgain) {
    Warn(absl::StrCat(lost_, lost_ == 1 ? " report is" : " reports are",
                      " missing from the files; they are written again"));
    lost_ = 0;
  }
}

void RunReport::Evaluated(int64_t step, const std::vector<tasks::Metric>& metrics, double loss,
                          int64_t images) {
  if (silent_) return;
  const int64_t epoch = EpochOf(step);
  progress_.Line(absl::StrFormat("epoch %*d/%d  %s  loss %.4f on %d test images",
                                 static_cast<int>(absl::StrCat(recipe_.epochs).size()), epoch,
                                 recipe_.epochs, DescribeMetrics(metrics, "  "), loss, images));
  std::vector<Scalar> scalars = {{"evaluation/loss", loss}};
  for (const tasks::Metric& metric : metrics) {
    scalars.push_back({absl::StrCat("evaluation/", metric.name), metric.value});
  }
  Plot(step, scalars);
  Write(
      "evaluation",
      WithMetrics({{"epoch", epoch}, {"step", step}, {"images", images}, {"loss", loss}}, metrics));
}

void RunReport::Unreadable(int64_t step, int64_t images) {
  if (silent_) return;
  if (images > unreadable_) {
    unreadable_ = images;
    progress_.Line(absl::StrFormat("warning: %d image%s could not be read and %s replaced", images,
                                   images == 1 ? "" : "s", images == 1 ? "was" : "were"));
  }
  Plot(step, {{"unreadable", static_cast<double>(images)}});
  Write("unreadable", {{"epoch", EpochOf(step)}, {"step", step}, {"images", images}});
}

void RunReport::RanksCompared(int64_t step, int64_t steps, std::span<const StepParts> ranks,
                              const std::vector<std::vector<parallel::Figure>>& figures) {
  if (silent_) return;
  nlohmann::json line = RanksJson(ranks);
  std::vector<Scalar> scalars;
  for (size_t rank = 0; rank < figures.size(); ++rank) {
    for (const parallel::Figure& each : figures[rank]) {
      line["ranks"][rank][each.name] = each.value;
      if (rank < kRanksDrawn) {
        scalars.push_back({absl::StrCat(each.name, "/rank", rank), each.value});
      }
    }
  }
  if (!scalars.empty()) Plot(step, scalars);
  // A job's metrics and its portal draw these, each as a curve.
  for (const Scalar& each : scalars) {
    Write("metric", {{"name", each.tag}, {"value", each.value}, {"step", step}});
  }
  if (steps == 0 && scalars.empty()) return;
  line["step"] = step;
  line["over_steps"] = steps;
  Write("ranks", std::move(line));
}

void RunReport::Checkpointed(int64_t step, const std::string& path, uint64_t bytes, double seconds,
                             const absl::Status& not_removed) {
  nlohmann::json line = {{"step", step}, {"path", path}, {"bytes", bytes}, {"seconds", seconds}};
  if (!not_removed.ok()) {
    line["not_removed"] = std::string(not_removed.message());
    Warn(
        absl::StrCat("an older checkpoint could not be removed and stays until the next is saved: ",
                     not_removed.message()));
  }
  Write("checkpoint", std::move(line));
}

void RunReport::CheckpointFailed(int64_t step, const absl::Status& why, int in_a_row) {
  Warn(absl::StrCat(why.message(), in_a_row > 1 ? absl::StrCat(" (", in_a_row, " in a row)") : ""));
  Write("checkpoint_failed",
        {{"step", step}, {"error", std::string(why.message())}, {"in_a_row", in_a_row}});
}

void RunReport::Finished(const Meter& meter, std::span<const StepParts> ranks,
                         const std::vector<tasks::Metric>& metrics, int64_t images,
                         const std::string& model) {
  if (silent_) return;
  const double seconds = meter.total_seconds();
  const double rate = seconds > 0 ? static_cast<double>(meter.total_images()) / seconds : 0;
  if (meter.total_steps() > 0) {
    const double steps = static_cast<double>(meter.total_steps());
    progress_.Line(absl::StrFormat("%s of training steps, %.0f images/s; a step takes %.1f ms: %s",
                                   DescribeSeconds(seconds), rate, 1e3 * seconds / steps,
                                   DescribeShares(meter.total())));
    if (ranks.size() > 1) progress_.Line(DescribeRanks(ranks));
  }
  progress_.Line(absl::StrFormat("%s on %d test images; the model is in %s",
                                 DescribeMetrics(metrics, ", "), images, model));
  nlohmann::json line = WithMetrics(RanksJson(ranks), metrics);
  line.update(nlohmann::json{
      {"images", images}, {"model", model}, {"seconds", seconds}, {"images_per_second", rate}});
  Write("result", std::move(line));
}

void RunReport::Ended(const absl::Status& status, bool stopped) {
  if (!mlflow_) return;
  if (!status.ok()) return NoteWritten(mlflow_->End(MlflowStatus::kFailed));
  NoteWritten(mlflow_->End(stopped ? MlflowStatus::kKilled : MlflowStatus::kFinished));
}

}  // namespace tutti::train
