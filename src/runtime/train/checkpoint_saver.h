// CheckpointSaver saves the checkpoints of a run, as far as the disk takes them: a training that
// goes on is worth more than one that stops because its disk is full for a while. One that fails is
// told to the user and in the metrics, and the next one that is due is the next attempt. Rank 0's.
// Thread-compatible.
#pragma once

#include "absl/status/status.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/report/run_report.h"
#include "runtime/train/timeline.h"

namespace tutti::train {

class CheckpointSaver {
 public:
  // So many that failed in a row are too many: the run would go on with nothing to resume from.
  static constexpr int kMostFailures = 10;

  enum class Need {
    kPeriodic,  // there will be others
    kLast,      // the run stops here, to be resumed from it
  };

  // `recipe` must outlive it; the checkpoints are those below its output.
  explicit CheckpointSaver(const Recipe& recipe) : recipe_(recipe) {}

  // An error ends the run: the last one, or kMostFailures in a row, could not be saved.
  absl::Status Save(const checkpoint::CheckpointSources& sources, Need need, RunReport& report,
                    Timeline& timeline);

 private:
  const Recipe& recipe_;
  int failures_ = 0;  // in a row
};

}  // namespace tutti::train
