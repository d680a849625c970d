#include "platform/tracking/calls/job_scope.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/tracking/calls/calls.h"

namespace tutti::tracking {
namespace {

constexpr absl::string_view kRootOfArtifacts = "mlflow-artifacts:/";
constexpr size_t kMostPartsOfPath = 100;

absl::Status Denied(absl::string_view what) {
  return absl::PermissionDeniedError(
      absl::StrCat("A job's token may not change ", what,
                   ": it is for its own run, the runs of that experiment and those that it begins. "
                   "Use the service's token for it."));
}

// Returns whether a call changes nothing, or makes something new.
bool IsFree(absl::string_view method, absl::string_view call) {
  static constexpr absl::string_view kFree[] = {
      "experiments/create",  "experiments/search",   "runs/create",     "runs/search",
      "logged-models",       "logged-models/search", "experiments/get", "runs/get",
      "metrics/get-history", "artifacts/list"};
  return method == "GET" || std::find(std::begin(kFree), std::end(kFree), call) != std::end(kFree);
}

// Change says what a job may change that is not its own.
enum class Change { kOfExperiment, kOwnAlone };

absl::Status CheckRun(TrackingStore& store, const std::string& job_run, const std::string& id,
                      Change change) {
  if (id == job_run) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const RunInfo run, store.GetRunInfo(id));
  if (run.job_run == job_run) return absl::OkStatus();
  if (change == Change::kOwnAlone) return Denied(absl::StrCat("run ", id, " so"));
  TUTTI_ASSIGN_OR_RETURN(const RunInfo own, store.GetRunInfo(job_run));
  return run.experiment == own.experiment ? absl::OkStatus() : Denied(absl::StrCat("run ", id));
}

Change ChangeBy(absl::string_view method) {
  return method == "DELETE" ? Change::kOwnAlone : Change::kOfExperiment;
}

absl::Status CheckModel(TrackingStore& store, const std::string& job_run, const std::string& id,
                        Change change) {
  TUTTI_ASSIGN_OR_RETURN(const Model model, store.GetModel(id, /*also_deleted=*/true));
  TUTTI_ASSIGN_OR_RETURN(const RunInfo own, store.GetRunInfo(job_run));
  if (model.experiment == own.experiment && change == Change::kOfExperiment) {
    return absl::OkStatus();
  }
  if (model.source_run.empty()) return Denied(absl::StrCat("model ", id));
  return CheckRun(store, job_run, model.source_run, Change::kOwnAlone);
}

absl::Status CheckExperiment(TrackingStore& store, const std::string& job_run, int64_t id) {
  TUTTI_ASSIGN_OR_RETURN(const RunInfo own, store.GetRunInfo(job_run));
  return own.experiment == id ? absl::OkStatus() : Denied(absl::StrCat("experiment ", id));
}

bool IsBelow(absl::string_view path, absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, kRootOfArtifacts)) return false;
  while (absl::ConsumePrefix(&uri, "/")) {
  }
  return absl::ConsumePrefix(&path, uri) && (path.empty() || path.front() == '/');
}

}  // namespace

absl::Status CheckScope(TrackingStore& store, const std::string& job_run, absl::string_view method,
                        absl::string_view call, RequestFields& fields) {
  if (IsFree(method, call)) return absl::OkStatus();
  if (call == "experiments/set-experiment-tag" || call == "experiments/delete-experiment-tag") {
    const int64_t id = ExperimentIn(fields);
    return fields.status().ok() ? CheckExperiment(store, job_run, id) : absl::OkStatus();
  }
  if (absl::StartsWith(call, "runs/")) {
    const std::string id = RunIn(fields);
    if (!fields.status().ok()) return absl::OkStatus();
    const bool removes = call == "runs/delete" || call == "runs/restore";
    return CheckRun(store, job_run, id, removes ? Change::kOwnAlone : Change::kOfExperiment);
  }
  if (absl::StartsWith(call, "logged-models/")) {
    const std::vector<std::string> parts = absl::StrSplit(call, '/');
    // A tag is no model.
    return CheckModel(store, job_run, parts[1],
                      parts.size() > 2 ? Change::kOfExperiment : ChangeBy(method));
  }
  return Denied(absl::StrCat("what ", call, " changes"));
}

absl::Status CheckArtifactScope(TrackingStore& store, const std::string& job_run,
                                absl::string_view method, absl::string_view path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  for (size_t i = 0; i < std::min(parts.size(), kMostPartsOfPath); ++i) {
    const auto run = store.GetRunInfo(parts[i]);
    if (run.ok() && IsBelow(path, run->artifact_uri)) {
      return CheckRun(store, job_run, run->id, ChangeBy(method));
    }
    if (!absl::StartsWith(parts[i], "m-")) continue;
    const auto model = store.GetModel(parts[i]);
    if (model.ok() && IsBelow(path, model->artifact_uri)) {
      return CheckModel(store, job_run, model->id, ChangeBy(method));
    }
  }
  return Denied(absl::StrCat("the artifact ", path));
}

absl::Status CheckModelsOfBatch(TrackingStore& store, const std::string& job_run,
                                const Batch& batch) {
  std::set<std::string> models;
  for (const Metric& metric : batch.metrics) models.insert(metric.model);
  for (const std::string& model : models) {
    if (model.empty()) continue;
    const absl::Status may = CheckModel(store, job_run, model, Change::kOfExperiment);
    if (!may.ok() && !absl::IsNotFound(may)) return may;  // what is not there is not written
  }
  return absl::OkStatus();
}

}  // namespace tutti::tracking
