// MlflowRun records a run for MLflow, as `mlflow ui --backend-store-uri STORE` and MlflowClient
// show it: written to the file store (mlflow_store.h) without any part of MLflow.
// Thread-compatible.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "runtime/train/recipe/recipe.h"
#include "runtime/train/report/mlflow_store.h"
#include "runtime/train/report/tensorboard.h"

namespace tutti::train {

// Keeps the characters that MLflow allows in a name; the others become '_'.
std::string MlflowName(absl::string_view tag);

class MlflowRun {
 public:
  // Opens a run, Running from now on, with the recipe's fields as params. It is the one of
  // `target.run_id`; or, for a recipe that resumes, the one that <output>/mlflow-run names, if the
  // store has it; else a new one, which that file then names. What params it has it keeps: MLflow
  // does not let them change. `clock` must outlive it.
  //
  // NotFound: the store has no run `target.run_id`.
  static absl::StatusOr<MlflowRun> Open(const MlflowTarget& target, const Recipe& recipe,
                                        const base::Clock& clock);

  // Each value is appended whole by one write; where a disk is full, no part of it stays.
  absl::Status Write(int64_t step, std::span<const Scalar> scalars);
  absl::Status End(MlflowStatus status) { return SetMlflowStatus(folder_, status, clock_->Now()); }

  const std::filesystem::path& folder() const { return folder_; }

 private:
  MlflowRun(std::filesystem::path folder, const base::Clock& clock)
      : folder_(std::move(folder)), clock_(&clock) {}
  absl::Status WriteParams(const Recipe& recipe);

  std::filesystem::path folder_;
  const base::Clock* clock_;
};

}  // namespace tutti::train
