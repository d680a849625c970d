// RunReport reports a run: to the user by a Progress, to programs by a MetricsFile, by
// TensorBoard's events and in MLflow's store.
//
// A report never ends a run: what a disk does not take is missing from the files, whole, and the
// user is told, once for as long as that lasts.
//
// Rank 0 has one that speaks, the others one that is silent. Thread-compatible.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/parallel/strategy.h"
#include "runtime/tasks/metric.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/report/gpu_utilisation.h"
#include "runtime/train/report/meter.h"
#include "runtime/train/report/metrics_file.h"
#include "runtime/train/report/mlflow.h"
#include "runtime/train/report/progress.h"
#include "runtime/train/report/tensorboard.h"
#include "runtime/train/report/utilisation.h"

namespace tutti::train {

struct RunFacts {
  int64_t parameters = 0, classes = 0, train_images = 0, test_images = 0;
  int64_t steps = 0, steps_per_epoch = 0;
  int world_size = 1;
  int threads = 1;
  std::string device = "cpu";  // or "cuda"
  int gpu = -1;                // of this rank, as CUDA numbers it; below 0: none
  std::string task = "classification";
};

// Where a report goes: nowhere unless something is named.
struct ReportSinks {
  std::vector<std::filesystem::path> metrics;
  std::filesystem::path tensorboard;  // folder
  MlflowTarget mlflow;
  GpuLibraries gpu_libraries;
  std::FILE* out = nullptr;
  bool terminal = false;                         // of `out`
  absl::Duration line_every = absl::Seconds(5);  // between lines about steps, without a terminal
};

class RunReport {
 public:
  // `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<RunReport>> Open(const Recipe& recipe,
                                                         const ReportSinks& sinks,
                                                         const base::Clock& clock);

  absl::Status Started(const RunFacts& facts, int64_t first_step);
  void Note(absl::string_view text) { progress_.Line(text); }
  void Warn(absl::string_view text);
  // Reports when a second has passed or `last_of_epoch`.
  void Stepped(Meter& meter, int64_t step, double learning_rate, bool last_of_epoch);
  void Evaluated(int64_t step, const std::vector<tasks::Metric>& metrics, double loss,
                 int64_t images);
  // Counts those of all ranks since this process began; warns the user when there are more.
  void Unreadable(int64_t step, int64_t images);
  // Tells the seconds per step of every rank, over the last `steps` steps of this one, and what
  // each says of its exchange.
  void RanksCompared(int64_t step, int64_t steps, std::span<const StepParts> ranks,
                     const std::vector<std::vector<parallel::Figure>>& figures = {});
  // Reports a checkpoint; `not_removed`: why an older one could not be, if so; the user is warned.
  void Checkpointed(int64_t step, const std::string& path, uint64_t bytes, double seconds,
                    const absl::Status& not_removed);
  // Warns the user too. `in_a_row`: how many have failed since the last that was saved.
  void CheckpointFailed(int64_t step, const absl::Status& why, int in_a_row);
  // Reports the end; `ranks`: seconds per step of every rank, over the whole run.
  void Finished(const Meter& meter, std::span<const StepParts> ranks,
                const std::vector<tasks::Metric>& metrics, int64_t images,
                const std::string& model);
  // Says how the run ended: with `status`, or stopped on request.
  void Ended(const absl::Status& status, bool stopped);

 private:
  RunReport(const Recipe& recipe, MetricsFile metrics, const ReportSinks& sinks,
            const base::Clock& clock);
  void Plot(int64_t step, const std::vector<Scalar>& scalars);
  void Write(absl::string_view event, nlohmann::json fields);
  void NoteWritten(const absl::Status& written);
  int64_t EpochOf(int64_t step) const;  // from 1; the one that the step is in
  double SecondsLeft(int64_t step) const;

  const Recipe recipe_;
  const base::Clock& clock_;
  MetricsFile metrics_;
  std::optional<EventFile> events_;
  std::optional<MlflowRun> mlflow_;
  Progress progress_;
  const bool silent_;
  RunFacts facts_;
  int64_t first_step_ = 0, unreadable_ = 0;
  int64_t lost_ = 0, taken_ = 0;  // reports that files did not take, and did since then
  absl::Time began_, last_;
  Utilisation utilisation_;
  const GpuLibraries gpu_libraries_;
  std::optional<GpuUtilisation> gpu_;
};

}  // namespace tutti::train
