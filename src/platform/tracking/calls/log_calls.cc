#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/tracking/calls/answers.h"
#include "platform/tracking/calls/calls.h"
#include "platform/tracking/calls/model_calls.h"

namespace tutti::tracking {
namespace {

using http::Response;
using nlohmann::json;
using Result = absl::StatusOr<Response>;

constexpr size_t kMostInputs = 1'000;

Metric MetricIn(RequestFields& fields) {
  Metric metric{.key = fields.Text("key", Need::kRequired),
                .point = {},
                .model = fields.Text("model_id", Need::kOptional),
                .dataset_name = fields.Text("dataset_name", Need::kOptional),
                .dataset_digest = fields.Text("dataset_digest", Need::kOptional)};
  metric.point.value = fields.Number("value");
  metric.point.time = fields.Integer("timestamp", Need::kRequired).value_or(0);
  metric.point.step = fields.Integer("step", Need::kOptional).value_or(0);
  if (metric.point.time < 0) {
    fields.Fail(absl::InvalidArgumentError(absl::StrCat("Invalid value for parameter '",
                                                        fields.PathOf("timestamp"),
                                                        "': it must not be negative.")));
  }
  return metric;
}

std::vector<Metric> MetricsIn(RequestFields& fields) {
  std::vector<Metric> metrics;
  const std::vector<const json*> objects = fields.Objects("metrics");
  metrics.reserve(objects.size());
  for (size_t i = 0; i < objects.size() && fields.status().ok(); ++i) {
    RequestFields metric(*objects[i], absl::StrCat("metrics[", i, "]."));
    metrics.push_back(MetricIn(metric));
    fields.Fail(metric.status());
  }
  return metrics;
}

absl::StatusOr<LogRequest> ReadMetric(RequestFields& fields) {
  LogRequest request{.run = RunIn(fields), .batch = {}, .status = {}};
  request.batch.metrics.push_back(MetricIn(fields));
  TUTTI_RETURN_IF_ERROR(fields.status());
  return request;
}

absl::StatusOr<LogRequest> ReadParam(RequestFields& fields) {
  LogRequest request{.run = RunIn(fields), .batch = {}, .status = {}};
  request.batch.params.push_back(
      {fields.Text("key", Need::kRequired), CutParam(fields.Text("value", Need::kOptional))});
  TUTTI_RETURN_IF_ERROR(fields.status());
  return request;
}

absl::StatusOr<LogRequest> ReadTag(RequestFields& fields) {
  LogRequest request{.run = RunIn(fields), .batch = {}, .status = {}};
  request.batch.tags.push_back(
      {fields.Text("key", Need::kRequired), CutTag(fields.Text("value", Need::kOptional))});
  TUTTI_RETURN_IF_ERROR(fields.status());
  return request;
}

absl::StatusOr<LogRequest> ReadBatch(RequestFields& fields) {
  LogRequest request{.run = RunIn(fields),
                     .batch = {.metrics = MetricsIn(fields),
                               .params = TagsIn(fields, "params"),
                               .tags = TagsIn(fields, "tags")},
                     .status = {}};
  TUTTI_RETURN_IF_ERROR(fields.status());
  for (KeyValue& param : request.batch.params) param.value = CutParam(param.value);
  for (KeyValue& tag : request.batch.tags) tag.value = CutTag(tag.value);
  return request;
}

Result DeleteTag(TrackingStore& store, RequestFields& fields) {
  const std::string run = RunIn(fields);
  const std::string key = fields.Text("key", Need::kRequired);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.DeleteTag(run, key));
}

DatasetInput InputIn(RequestFields& fields) {
  DatasetInput input{.dataset = {}, .tags = TagsIn(fields, "tags")};
  const json* const object = fields.Object("dataset", Need::kRequired);
  if (object == nullptr) return input;
  RequestFields dataset(*object, fields.PathOf("dataset."));
  input.dataset = {.name = dataset.Text("name", Need::kRequired),
                   .digest = dataset.Text("digest", Need::kRequired),
                   .source_type = dataset.Text("source_type", Need::kRequired),
                   .source = dataset.Text("source", Need::kRequired),
                   .schema = dataset.Text("schema", Need::kOptional),
                   .profile = dataset.Text("profile", Need::kOptional)};
  fields.Fail(dataset.status());
  fields.Fail(CheckInput(input));
  return input;
}

Result LogInputs(TrackingStore& store, RequestFields& fields) {
  const std::string run = RunIn(fields);
  const std::vector<const json*> objects = fields.Objects("datasets");
  std::vector<DatasetInput> inputs;
  if (objects.size() > kMostInputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("A request can log at most ", kMostInputs, " data sets."));
  }
  for (size_t i = 0; i < objects.size() && fields.status().ok(); ++i) {
    RequestFields input(*objects[i], absl::StrCat("datasets[", i, "]."));
    inputs.push_back(InputIn(input));
    fields.Fail(input.status());
  }
  const std::vector<ModelOfRun> models = ModelsIn(fields, "models");
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.LogInputs(run, inputs, models));
}

Result LogOutputs(TrackingStore& store, RequestFields& fields) {
  const std::string run = RunIn(fields);
  const std::vector<ModelOfRun> models = ModelsIn(fields, "models");
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.LogOutputs(run, models));
}

Result LogModel(TrackingStore& store, RequestFields& fields) {
  const std::string run = RunIn(fields);
  const std::string text = fields.Text("model_json", Need::kRequired);
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const json model, ParseRequest(text));
  for (const char* field : {"artifact_path", "flavors", "utc_time_created", "run_id"}) {
    if (model.contains(field)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("Malformed model info: it has no '", field, "'"));
  }
  return Answer(store.LogModel(run, model.dump()));
}

}  // namespace

std::span<const BatchCall> BatchCalls() {
  static constexpr BatchCall kCalls[] = {
      {"runs/log-metric", ReadMetric},
      {"runs/log-parameter", ReadParam},
      {"runs/set-tag", ReadTag},
      {"runs/log-batch", ReadBatch},
  };
  return kCalls;
}

std::span<const ApiCall> LogCalls() {
  static constexpr ApiCall kCalls[] = {
      {"POST", "runs/delete-tag", DeleteTag},
      {"POST", "runs/log-inputs", LogInputs},
      {"POST", "runs/outputs", LogOutputs},
      {"POST", "runs/log-model", LogModel},
  };
  return kCalls;
}

}  // namespace tutti::tracking
