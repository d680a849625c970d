// Walks through MLflow's file store, for file_store.h: within a budget, past whatever else lies
// there. Links are passed over: a job's results are not trusted to stay in their folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::mlflow {

// Entries that may still be looked at.
struct Budget {
  Budget();
  bool Take() { return left-- > 0; }
  int left;
};

// Returns "mlruns" and "mlruns-rank-N" below a job's outputs that are there, by rank.
std::vector<std::filesystem::path> StoresIn(const std::filesystem::path& outputs);
// Returns the folders with a meta.yaml; not the registry, which is called `models`.
std::vector<std::filesystem::path> ExperimentsOf(const std::filesystem::path& store,
                                                 Budget& budget);
// Returns the folders of experiments that are runs, in the order of their names.
std::vector<std::filesystem::path> RunsOf(const std::filesystem::path& store, Budget& budget);
// Returns the folders in it, by name; none if it is not there.
std::vector<std::filesystem::path> FoldersIn(const std::filesystem::path& folder, Budget& budget);

// The tag of a run that is within another one: the other's id.
inline constexpr char kParentTag[] = "mlflow.parentRunId";
// Returns whether the run has it.
bool IsNested(const std::filesystem::path& run);
// Visits the file of each metric of a run, with the metric's name: "evaluation/top1".
void ForEachMetricOf(
    const std::filesystem::path& run, Budget& budget,
    const std::function<void(const std::string& name, const std::filesystem::path& file)>& visit);

// LoggedValue is one value that was logged of a metric.
struct LoggedValue {
  int64_t time = 0;  // in milliseconds since 1970
  double value = 0;  // NaN too
  int64_t step = 0;
};
// Reads a line of a metric's file, "TIME VALUE STEP", the step from MLflow 1.1 on; nothing if it is
// none.
std::optional<LoggedValue> ParseLoggedValue(absl::string_view line);

// Visits every regular file at most `depth` folders below.
void ForEachFileBelow(const std::filesystem::path& folder, int depth, Budget& budget,
                      const std::function<void(const std::filesystem::path&)>& visit);

// Returns the file's last bytes; "" if it cannot be read.
std::string TailOf(const std::filesystem::path& file, uint64_t bytes);

// Returns the value of a top-level key in a YAML file that MLflow wrote, with each key on its own
// line; "" if it has none.
std::string ValueIn(const std::filesystem::path& yaml, absl::string_view key);

// Returns a text as YAML has it in single quotes; line ends are not for it.
std::string Quoted(absl::string_view value);

// Corrects the meta.yaml of a part of the store, which has moved: its artifacts are within it.
void PointToItself(const std::filesystem::path& store, const std::filesystem::path& part);

// Corrects the meta.yaml of a registered model's version: where it was made of a run or a logged
// model that the store has, its paths then lead into the store.
void PointVersionToStore(const std::filesystem::path& store, const std::filesystem::path& version);

}  // namespace tutti::mlflow
