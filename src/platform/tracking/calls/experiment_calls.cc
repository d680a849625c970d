#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/tracking/calls/answers.h"
#include "platform/tracking/calls/calls.h"
#include "platform/tracking/values/artifact_path.h"

namespace tutti::tracking {
namespace {

using http::Response;
using nlohmann::json;
using Result = absl::StatusOr<Response>;

Result CreateExperiment(TrackingStore& store, RequestFields& fields) {
  const std::string name = fields.Text("name", Need::kRequired);
  const std::string location = fields.Text("artifact_location", Need::kOptional);
  const std::vector<KeyValue> tags = TagsIn(fields, "tags");
  if (location.size() > kMostLocationLength) {
    fields.Fail(absl::InvalidArgumentError(absl::StrCat(
        "Artifact location exceeds the maximum length of ", kMostLocationLength, " bytes.")));
  }
  // Files of its runs would have no path.
  absl::string_view below = location;
  if (absl::ConsumePrefix(&below, "mlflow-artifacts:")) {
    while (absl::ConsumePrefix(&below, "/") || absl::ConsumeSuffix(&below, "/")) {
    }
    fields.Fail(ArtifactPath(below).status());
  }
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const int64_t id, store.CreateExperiment(name, location, tags));
  return Answer({{"experiment_id", absl::StrCat(id)}});
}

Result GetExperiment(TrackingStore& store, RequestFields& fields) {
  const int64_t id = ExperimentIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, store.GetExperiment(id));
  return Answer({{"experiment", JsonOf(experiment)}});
}

Result GetExperimentByName(TrackingStore& store, RequestFields& fields) {
  const std::string name = fields.Text("experiment_name", Need::kRequired);
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const Experiment experiment, store.GetExperimentByName(name));
  return Answer({{"experiment", JsonOf(experiment)}});
}

Result SearchExperiments(TrackingStore& store, RequestFields& fields) {
  SearchRequest request = SearchIn(fields, Subject::kExperiments);
  request.view = ViewIn(fields, "view_type");
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const ExperimentPage page, store.SearchExperiments(request));
  json experiments = json::array();
  for (const Experiment& experiment : page.experiments) experiments.push_back(JsonOf(experiment));
  return AnswerPage("experiments", std::move(experiments), page.more, request.offset);
}

Result UpdateExperiment(TrackingStore& store, RequestFields& fields) {
  const int64_t id = ExperimentIn(fields);
  const std::string name = fields.Text("new_name", Need::kRequired);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.RenameExperiment(id, name));
}

Result DeleteExperiment(TrackingStore& store, RequestFields& fields) {
  const int64_t id = ExperimentIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.DeleteExperiment(id));
}

Result RestoreExperiment(TrackingStore& store, RequestFields& fields) {
  const int64_t id = ExperimentIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.RestoreExperiment(id));
}

Result SetExperimentTag(TrackingStore& store, RequestFields& fields) {
  const int64_t id = ExperimentIn(fields);
  const KeyValue tag{fields.Text("key", Need::kRequired), fields.Text("value", Need::kOptional)};
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.SetExperimentTag(id, tag));
}

Result DeleteExperimentTag(TrackingStore& store, RequestFields& fields) {
  const int64_t id = ExperimentIn(fields);
  const std::string key = fields.Text("key", Need::kRequired);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.DeleteExperimentTag(id, key));
}

}  // namespace

std::span<const ApiCall> ExperimentCalls() {
  static constexpr ApiCall kCalls[] = {
      {"POST", "experiments/create", CreateExperiment},
      {"GET", "experiments/get", GetExperiment},
      {"GET", "experiments/get-by-name", GetExperimentByName},
      {"GET", "experiments/list", SearchExperiments},  // of MLflow 1
      {"GET", "experiments/search", SearchExperiments},
      {"POST", "experiments/search", SearchExperiments},
      {"POST", "experiments/update", UpdateExperiment},
      {"POST", "experiments/delete", DeleteExperiment},
      {"POST", "experiments/restore", RestoreExperiment},
      {"POST", "experiments/set-experiment-tag", SetExperimentTag},
      {"POST", "experiments/delete-experiment-tag", DeleteExperimentTag},
  };
  return kCalls;
}

}  // namespace tutti::tracking
