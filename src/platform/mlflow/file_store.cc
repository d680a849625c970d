#include "platform/mlflow/file_store.h"

#include <algorithm>
#include <map>
#include <optional>
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
#include "platform/mlflow/store_walk.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kTail = 64 << 10;  // of a metric's file
constexpr int kDeepest = 5;           // folders below a run's artifacts or metrics

struct Latest {
  Metric metric;
  int64_t time = 0;
};

using VisitMetric = std::function<void(const std::string& name, const fs::path& file)>;

void ForEachMetricOfRun(const fs::path& run, Budget& budget, const VisitMetric& visit) {
  const fs::path folder = run / "metrics";
  ForEachFileBelow(folder, kDeepest, budget, [&](const fs::path& file) {
    visit(file.lexically_relative(folder).generic_string(), file);
  });
}

// Metrics of one run, added to what there is; the one logged last counts.
void AddMetrics(const fs::path& run, Budget& budget, std::map<std::string, Latest>& all) {
  ForEachMetricOfRun(run, budget, [&](const std::string& name, const fs::path& file) {
    Latest latest{.metric = {.name = name}};
    if (absl::StartsWith(name, "system/")) return;
    if (!LastValue(TailOf(file, kTail), latest.metric, latest.time)) return;
    const auto [known, is_new] = all.emplace(latest.metric.name, latest);
    if (!is_new && known->second.time <= latest.time) known->second = latest;
  });
}

bool IsNested(const fs::path& run) {
  std::error_code error;
  return fs::exists(run / "tags" / "mlflow.parentRunId", error);
}

void AddMetricsOf(const fs::path& store, Logged& logged) {
  std::map<std::string, Latest> own, nested;
  Budget budget;
  for (const fs::path& run : RunsOf(store, budget)) {
    AddMetrics(run, budget, IsNested(run) ? nested : own);
  }
  if (own.empty()) own.swap(nested);
  for (auto& [name, latest] : own) logged.metrics.push_back(latest.metric);
  for (auto& [name, latest] : nested) logged.nested_metrics.push_back(latest.metric);
}

std::string ParamIn(const fs::path& file) {
  const auto text = base::ReadFile(file, kTail);
  if (!text.ok()) return "";
  return base::BoundedUtf8(absl::string_view(*text).substr(0, text->find('\n')), kMostParam);
}

void AddParamsOf(const fs::path& store, Logged& logged) {
  Budget budget;
  std::vector<std::pair<std::string, fs::path>> runs;  // by the time when they began
  bool any_own = false;
  for (fs::path& run : RunsOf(store, budget)) {
    any_own |= !IsNested(run);
    runs.emplace_back(ValueIn(run / "meta.yaml", "start_time"), std::move(run));
  }
  std::sort(runs.begin(), runs.end());
  std::map<std::string, std::string> params;
  for (const auto& [time, run] : runs) {
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

// Before MLflow 3 a model is a folder among its run's artifacts.
void AddModelsOfRuns(const fs::path& store, const fs::path& outputs, Budget& budget,
                     Logged& logged) {
  for (const fs::path& run : RunsOf(store, budget)) {
    const fs::path artifacts = run / "artifacts";
    ForEachFileBelow(artifacts, kDeepest, budget, [&](const fs::path& file) {
      if (file.filename() != "MLmodel" || file.parent_path() == artifacts) return;
      logged.models.push_back({file.parent_path().lexically_relative(artifacts).generic_string(),
                               file.parent_path().lexically_relative(outputs.parent_path())});
    });
  }
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

void RemoveUnusedStore(const fs::path& store) {
  bool used = false;
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(store, error))) return;
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
    for (const fs::path& run : RunsOf(store, budget)) ForEachMetricOfRun(run, budget, visit);
  }
}

bool LastValue(absl::string_view text, Metric& metric, int64_t& time) {
  std::optional<std::pair<int64_t, int64_t>> best;  // step, time
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t at = 0, step = 0;
    double value = 0;
    const bool is_one = words.size() >= 2 && absl::SimpleAtoi(words[0], &at) &&
                        absl::SimpleAtod(words[1], &value) &&
                        (words.size() == 2 || absl::SimpleAtoi(words[2], &step));
    if (!is_one || (best && *best > std::pair(step, at))) continue;
    best = {step, at};
    metric.value = value;
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
    AddModelsOfRuns(store, outputs, budget, logged);
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
