// Reads and makes MLflow's own file store, in which a job logs: it lies in the job's results,
// outputs/mlruns, and each rank but the first has one of its own (decision 043). This room alone
// knows the layout
//
//   STORE/EXPERIMENT/meta.yaml
//   STORE/EXPERIMENT/RUN/meta.yaml, metrics/NAME, params/NAME, tags/NAME, artifacts/…
//   STORE/EXPERIMENT/models/MODEL/meta.yaml, artifacts/…          (MLflow 3)
//   STORE/models/NAME/version-N/meta.yaml   (the registry; of MLflow 1 that of model_registry.h)
//
// as it is of MLflow 1 to 3. `outputs` below is a job's folder of that name. What is read is
// bounded (kMostEntries), links are not followed, and a file that is no such thing is passed over:
// nothing here fails for what a job has written. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::mlflow {

// Files and folders of one store that are looked at.
inline constexpr int kMostEntries = 20'000;

// Returns the store of a rank, below outputs/: "mlruns", "mlruns-rank-3".
std::string StoreName(int rank);

// Makes a store with one experiment, MLflow's default one under that name; "" is "Default". One
// that is there already stays as it is.
absl::Status MakeStore(const std::filesystem::path& store, const std::string& experiment);
// Makes a run of that id in the first experiment of a store that MakeStore has made, running, for
// programs that are told of it by MLFLOW_RUN_ID.
absl::Status MakeRun(const std::filesystem::path& store, const std::string& id);
// Removes runs of MakeRun's that nobody has used, and a store that then holds nothing but
// experiments without runs; else changes nothing.
void RemoveUnusedStore(const std::filesystem::path& store);

// Calls `visit` with the name ("evaluation/top1") and the file of each metric of all runs, the
// lowest rank's store first.
void ForEachMetric(
    const std::filesystem::path& outputs,
    const std::function<void(const std::string& name, const std::filesystem::path& file)>& visit);

struct Metric {
  std::string name;  // "evaluation/top1"
  double value = 0;  // the last one logged; NaN too
  int64_t step = 0;
};

struct Param {
  std::string name, value;  // the value's first line, at most kMostParam characters
};
inline constexpr size_t kMostParam = 200;

struct Model {
  std::string name;
  std::string path;  // "outputs/mlruns/0/RUN/artifacts/model": the folder that has its MLmodel
};

// Artifact is a file that a run logged, but for what is within a model.
struct Artifact {
  std::string name;  // "plots/roc.png"
  std::string path;  // "outputs/mlruns/0/RUN/artifacts/plots/roc.png"
};
inline constexpr size_t kMostArtifacts = 200;

// Run is one run of a store, with what it logged itself.
struct Run {
  std::string id;
  std::string name;             // as MLflow or the user named it; may be empty
  std::string parent;           // the id of the run that it is nested in; empty: none that is there
  std::vector<Metric> metrics;  // by name
};

struct Logged {
  std::vector<Metric> metrics;      // by name
  std::vector<Run> runs;            // each behind its parent, else by the time when they began
  std::vector<Param> params;        // by name, of the same runs as `metrics`
  std::vector<Model> models;        // of the lowest rank first, by path
  std::vector<Artifact> artifacts;  // the same; the first kMostArtifacts
};

// Metrics are those of the lowest rank that logged any; those of runs within other runs are left
// out of `metrics` where another run has any. `runs` are those of that rank that logged metrics,
// and those in which they are nested. What MLflow measures by itself (system/…) is none. Params are
// of the lowest rank that logged any; of several runs the one that was begun last counts. Models
// and artifacts are of all ranks.
Logged LoggedBelow(const std::filesystem::path& outputs);

// Reads the last value of a metric's file ("TIME VALUE STEP" a line): that of the highest step, and
// of those the latest. False if there is none.
bool LastValue(absl::string_view text, Metric& metric, int64_t& time);

// The stores say by whole paths where their artifacts are, and MLflow writes and reads there. Says
// in all of them that the artifacts are in the store itself, wherever it came from, and so of what
// versions of registered models were made of; what MLflow was told to keep elsewhere stays. To be
// called where a store was moved and nobody uses it.
void AdoptMovedStores(const std::filesystem::path& outputs);

}  // namespace tutti::mlflow
