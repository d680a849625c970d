// Writes MLflow's file store, as mlflow/store/tracking/file_store.py of MLflow 2.22 and 3.17 has
// it:
//
//   STORE/EXPERIMENT/meta.yaml       its name; experiment 0 is "Default"
//   STORE/EXPERIMENT/RUN/meta.yaml   its times, its user, its status as a number of RunStatus
//                        params/NAME, tags/NAME    the value, without an end of line
//                        metrics/NAME              "MILLISECONDS VALUE STEP\n" for every value
//                        artifacts/
//   STORE/.trash/EXPERIMENT          one that was deleted
//
// A name may have slashes: "evaluation/top1" is the file top1 in metrics/evaluation. Functions are
// thread-safe; two writers of one run are the caller's to order. Errors name the path.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::train {

// Where a run goes, in the words of MLflow's client.
struct MlflowTarget {
  std::filesystem::path store;                 // empty: nowhere
  std::string elsewhere;                       // what MLFLOW_TRACKING_URI names instead: "http:"
  std::string run_id;                          // of a run to go on in; empty: a new one
  std::string experiment_name, experiment_id;  // neither: experiment 0
};

// Reads MLFLOW_TRACKING_URI (a folder if it has no scheme or is a "file:"), MLFLOW_RUN_ID,
// MLFLOW_EXPERIMENT_NAME and MLFLOW_EXPERIMENT_ID. Nowhere, if it is the address in TUTTI_TRACKING:
// the service there logs the metrics file to the job's run.
MlflowTarget MlflowFromEnvironment(const std::map<std::string, std::string>& environment);

enum class MlflowStatus { kRunning = 1, kFinished = 3, kFailed = 4, kKilled = 5 };

// Returns the folder of the target's experiment. One that is named and not there is made; so is
// experiment 0, and the store. NotFound: there is none with this id. FailedPrecondition: the name
// is that of a deleted one, or of one with another id.
absl::StatusOr<std::filesystem::path> MlflowExperiment(const MlflowTarget& target, absl::Time now);

// Makes a new run in the experiment, Running since `now`. Its name begins with `kind`.
absl::StatusOr<std::filesystem::path> MakeMlflowRun(const std::filesystem::path& experiment,
                                                    absl::string_view kind, absl::Time now);

// Finds the folder of a run of any experiment. None: there is none, or it or its experiment was
// deleted.
std::optional<std::filesystem::path> FindMlflowRun(const std::filesystem::path& store,
                                                   const std::string& id);

// Changes nothing else of what its meta.yaml says.
absl::Status SetMlflowStatus(const std::filesystem::path& run, MlflowStatus status, absl::Time now);

}  // namespace tutti::train
