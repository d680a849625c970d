// RunOutput writes what a run leaves behind: its report, its trace, checkpoints, the best model so
// far and the finished one. Every rank has one and makes the same calls, in which ranks send what
// they hold; rank 0 alone writes files and talks to the user. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/evaluation.h"
#include "runtime/train/report/meter.h"
#include "runtime/train/report/run_report.h"
#include "runtime/train/run_state.h"
#include "runtime/train/setup/run_parts.h"
#include "runtime/train/timeline.h"
#include "runtime/train/trainer.h"

namespace tutti::train {

class RunOutput {
 public:
  // All of them outlive it. `parts` are made when Open is called.
  RunOutput(const Recipe& recipe, const TrainerContext& context, Parts& parts);

  // Makes the output folder, begins the report and says in it how the run begins: after `step`
  // steps, with `precision_reason` if there is one. Needed before the functions below.
  absl::Status Open(const Resumed& resumed, const std::string& precision_reason, int64_t step);

  RunReport& report() { return *report_; }
  Timeline& timeline() { return timeline_; }

  // Reports how long each part of a step took on each rank, over the steps since the last
  // comparison. All ranks must call it.
  absl::Status CompareRanks(int64_t step, const Meter& meter);
  absl::Status ReportUnreadable(int64_t step);

  absl::Status SaveCheckpoint(const RunProgress& progress, CheckpointSaver::Need need);
  // Writes the model as it is to "best" and raises `best` if the evaluation is better; as good is
  // not better. One that could not be written does not end the training; at the end (Finish) it is
  // an error, unless a better one has been written since. An error is of a collective.
  absl::Status KeepIfBest(const Evaluation& evaluation, int64_t step, double& best);

  // Writes the finished model, the report's last lines and the trace.
  absl::Status Finish(const Meter& meter, const Evaluation& evaluation);
  absl::Status WriteTrace() { return timeline_.Write(*parts_.strategy, Soon()); }
  // Says how the run ended, where a report was begun.
  void Ended(const absl::Status& status, bool stopped);

 private:
  bool leads() const { return parts_.strategy->layout().reports(); }
  base::Deadline Soon() const { return base::Deadline::After(timeout_); }
  ReportSinks SinksOf() const;
  absl::Status SaveModel();
  absl::Status WriteModel(const char* name);

  const Recipe& recipe_;
  const TrainerContext& context_;
  Parts& parts_;
  const absl::Duration timeout_;
  const base::SystemClock clock_;
  std::unique_ptr<RunReport> report_;
  Timeline timeline_;
  CheckpointSaver saver_;
  StepParts compared_;  // up to the last comparison of the ranks
  int64_t compared_steps_ = 0;
  absl::Status best_kept_;  // on rank 0: why a better one than that was not
};

}  // namespace tutti::train
