#include "platform/mlflow/file_store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/mlflow/run_tree.h"
#include "platform/mlflow/store_walk.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kTail = 64 << 10;  // of a metric's file
constexpr int kDeepest = 5;           // folders below a run's artifacts or params

struct Latest {
  Metric metric;
  int64_t time = 0;
};

using VisitMetric = std::function<void(const std::string& name, const fs::path& file)>;

// Returns the metrics of one run, by name.
std::map<std::string, Latest> MetricsOf(const fs::path& run, Budget& budget) {
  std::map<std::string, Latest> metrics;
  ForEachMetricOf(run, budget, [&](const std::string& name, const fs::path& file) {
    Latest latest{.metric = {.name = name}};
    if (absl::StartsWith(name, "system/")) return;
    if (LastValue(TailOf(file, kTail), latest.metric, latest.time)) metrics[name] = latest;
  });
  return metrics;
}

// Adds a run's metrics to `all`. If several runs logged a metric, the last value counts.
void AddMetrics(const std::map<std::string, Latest>& metrics, std::map<std::string, Latest>& all) {
  for (const auto& [name, latest] : metrics) {
    const auto [known, is_new] = all.emplace(name, latest);
    if (!is_new && known->second.time <= latest.time) known->second = latest;
  }
}

std::vector<Metric> Listed(const std::map<std::string, Latest>& metrics) {
  std::vector<Metric> list;
  for (const auto& [name, latest] : metrics) list.push_back(latest.metric);
  return list;
}

std::string TagOf(const fs::path& run, absl::string_view tag) {
  const auto text = base::ReadFile(run / "tags" / std::string(tag), kTail);
  if (!text.ok()) return "";
  return base::BoundedUtf8(absl::string_view(*text).substr(0, text->find('\n')), kMostParam);
}

// MLflow 1 keeps the name as a tag alone.
std::string NameOf(const fs::path& run) {
  const std::string name = ValueIn(run / "meta.yaml", "run_name");
  return name.empty() ? TagOf(run, "mlflow.runName") : base::BoundedUtf8(name, kMostParam);
}

std::vector<fs::path> RunsByStart(const fs::path& store, Budget& budget) {
  std::vector<std::pair<std::string, fs::path>> runs;
  for (fs::path& run : RunsOf(store, budget)) {
    runs.emplace_back(ValueIn(run / "meta.yaml", "start_time"), std::move(run));
  }
  std::sort(runs.begin(), runs.end());
  std::vector<fs::path> sorted;
  for (auto& [time, run] : runs) sorted.push_back(std::move(run));
  return sorted;
}

void AddMetricsOf(const fs::path& store, Logged& logged) {
  std::map<std::string, Latest> own, nested;
  std::vector<Run> runs;
  Budget budget;
  for (const fs::path& run : RunsByStart(store, budget)) {
    const std::map<std::string, Latest> metrics = MetricsOf(run, budget);
    AddMetrics(metrics, IsNested(run) ? nested : own);
    runs.push_back({.id = run.filename().string(),
                    .name = NameOf(run),
                    .parent = TagOf(run, kParentTag),
                    .metrics = Listed(metrics)});
  }
  logged.metrics = Listed(own.empty() ? nested : own);
  logged.runs = WithMetrics(std::move(runs));
}

std::string ParamIn(const fs::path& file) {
  const auto text = base::ReadFile(file, kTail);
  if (!text.ok()) return "";
  return base::BoundedUtf8(absl::string_view(*text).substr(0, text->find('\n')), kMostParam);
}

void AddParamsOf(const fs::path& store, Logged& logged) {
  Budget budget;
  const std::vector<fs::path> runs = RunsByStart(store, budget);
  const bool any_own = !std::all_of(runs.begin(), runs.end(), IsNested);
  std::map<std::string, std::string> params;
  for (const fs::path& run : runs) {
    if (any_own && IsNested(run)) continue;
    const fs::path folder = run / "params";
    ForEachFileBelow(folder, kDeepest, budget, [&](const fs::path& file) {
      params[file.lexically_relative(folder).generic_string()] = ParamIn(file);
    });
  }
  for (auto& [name, value] : params) logged.params.push_back({name, value});
}

// Logged models of MLflow 3, each in a folder of its own with its name beside it.
void AddOwnModels(const fs::path& store, const fs::path& outputs, Budget& budget, Logged& logged) {
  for (const fs::path& experiment : ExperimentsOf(store, budget)) {
    for (const fs::path& model : FoldersIn(experiment / "models", budget)) {
      std::error_code error;
      if (!fs::is_regular_file(model / "artifacts" / "MLmodel", error)) continue;
      const std::string name = ValueIn(model / "meta.yaml", "name");
      logged.models.push_back({name.empty() ? model.filename().string() : name,
                               (model / "artifacts").lexically_relative(outputs.parent_path())});
    }
  }
}

bool IsWithinAny(const fs::path& file, const std::set<fs::path>& folders) {
  for (fs::path above = file.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    if (folders.contains(above)) return true;
  }
  return false;
}

// Adds what runs logged as files. Before MLflow 3 a model is a folder among them.
void AddArtifactsOfRuns(const fs::path& store, const fs::path& outputs, Budget& budget,
                        Logged& logged) {
  for (const fs::path& run : RunsOf(store, budget)) {
    const fs::path artifacts = run / "artifacts";
    std::set<fs::path> models, files;
    ForEachFileBelow(artifacts, kDeepest, budget, [&](const fs::path& file) {
      const bool is_a_models = file.filename() == "MLmodel" && file.parent_path() != artifacts;
      is_a_models ? models.insert(file.parent_path()) : files.insert(file);
    });
    const auto name = [&](const fs::path& path) {
      return path.lexically_relative(artifacts).generic_string();
    };
    const auto place = [&](const fs::path& path) {
      return path.lexically_relative(outputs.parent_path()).generic_string();
    };
    for (const fs::path& model : models) logged.models.push_back({name(model), place(model)});
    for (const fs::path& file : files) {
      if (logged.artifacts.size() >= kMostArtifacts) break;
      if (!IsWithinAny(file, models)) logged.artifacts.push_back({name(file), place(file)});
    }
  }
}

constexpr const char* kPartsOfARun[] = {"metrics", "params", "artifacts", "tags"};

// Returns whether nobody has logged anything in a run that MakeRun has made, or has ended it.
// MLflow's own runs have tags.
bool IsAsItWasMade(const fs::path& run) {
  std::error_code error;
  for (fs::directory_iterator entry(run, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    const bool is_ours = name == "meta.yaml" ||
                         std::count(std::begin(kPartsOfARun), std::end(kPartsOfARun), name) > 0;
    std::error_code unread;
    if (!is_ours || (name != "meta.yaml" && !fs::is_empty(entry->path(), unread))) return false;
  }
  return !error && ValueIn(run / "meta.yaml", "status") == "1" &&
         ValueIn(run / "meta.yaml", "end_time") == "null";
}

}  // namespace

std::string StoreName(int rank) {
  return rank == 0 ? "mlruns" : absl::StrCat("mlruns-rank-", rank);
}

absl::Status MakeStore(const fs::path& store, const std::string& experiment) {
  const fs::path folder = store / "0";
  std::error_code error;
  if (fs::exists(fs::symlink_status(store, error))) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  const int64_t now = absl::ToUnixMillis(absl::Now());
  const std::string name = experiment.empty() ? "Default" : base::BoundedUtf8(experiment);
  return base::ReplaceFile(
      folder / "meta.yaml",
      absl::StrCat("artifact_location: ", Quoted(folder.string()), "\ncreation_time: ", now,
                   "\nexperiment_id: '0'\nlast_update_time: ", now,
                   "\nlifecycle_stage: active\nname: ", Quoted(name), "\n"));
}

// A run is one once it has its meta.yaml, which therefore comes last.
absl::Status MakeRun(const fs::path& store, const std::string& id) {
  const fs::path run = store / "0" / id;
  for (const char* part : kPartsOfARun) TUTTI_RETURN_IF_ERROR(base::MakeDirectories(run / part));
  return base::ReplaceFile(
      run / "meta.yaml",
      absl::StrCat("artifact_uri: ", Quoted((run / "artifacts").string()),
                   "\nend_time: null\nentry_point_name: ''\nexperiment_id: '0'\n",
                   "lifecycle_stage: active\nrun_id: '", id, "'\nrun_name: '", id.substr(0, 8),
                   "'\nrun_uuid: '", id, "'\nsource_name: ''\nsource_type: 4\n",
                   "source_version: ''\nstart_time: ", absl::ToUnixMillis(absl::Now()),
                   "\nstatus: 1\ntags: []\nuser_id: ''\n"));
}

void RemoveUnusedStore(const fs::path& store) {
  bool used = false;
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(store, error))) return;
  Budget budget;
  for (const fs::path& run : RunsOf(store, budget)) {
    if (IsAsItWasMade(run)) fs::remove_all(run, error);
  }
  auto entry = fs::recursive_directory_iterator(store, error);
  for (const fs::recursive_directory_iterator end; !used && !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const bool is_folder = entry->is_directory(ignored) && !entry->is_symlink(ignored);
    // STORE/EXPERIMENT, STORE/.trash, STORE/EXPERIMENT/meta.yaml
    used = is_folder ? entry.depth() > 0
                     : entry.depth() != 1 || entry->path().filename() != "meta.yaml";
  }
  if (!used && !error) fs::remove_all(store, error);
}

void ForEachMetric(const fs::path& outputs, const VisitMetric& visit) {
  for (const fs::path& store : StoresIn(outputs)) {
    Budget budget;
    for (const fs::path& run : RunsOf(store, budget)) ForEachMetricOf(run, budget, visit);
  }
}

bool LastValue(absl::string_view text, Metric& metric, int64_t& time) {
  std::optional<std::pair<int64_t, int64_t>> best;  // step, time
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::optional<LoggedValue> logged = ParseLoggedValue(line);
    if (!logged || (best && *best > std::pair(logged->step, logged->time))) continue;
    best = {logged->step, logged->time};
    metric.value = logged->value;
  }
  if (!best) return false;
  metric.step = best->first;
  time = best->second;
  return true;
}

Logged LoggedBelow(const fs::path& outputs) {
  Logged logged;
  for (const fs::path& store : StoresIn(outputs)) {
    if (logged.metrics.empty()) AddMetricsOf(store, logged);
    if (logged.params.empty()) AddParamsOf(store, logged);
    const auto first = static_cast<std::ptrdiff_t>(logged.models.size());
    Budget budget;
    AddArtifactsOfRuns(store, outputs, budget, logged);
    AddOwnModels(store, outputs, budget, logged);
    std::sort(logged.models.begin() + first, logged.models.end(),
              [](const Model& a, const Model& b) { return a.path < b.path; });
  }
  return logged;
}

void AdoptMovedStores(const fs::path& outputs) {
  for (const fs::path& store : StoresIn(outputs)) {
    Budget budget;
    for (const fs::path& experiment : ExperimentsOf(store, budget)) {
      PointToItself(store, experiment);
      for (const fs::path& model : FoldersIn(experiment / "models", budget)) {
        PointToItself(store, model);
      }
    }
    for (const fs::path& run : RunsOf(store, budget)) PointToItself(store, run);
    for (const fs::path& model : FoldersIn(store / "models", budget)) {
      for (const fs::path& version : FoldersIn(model, budget)) PointVersionToStore(store, version);
    }
  }
}

}  // namespace tutti::mlflow
