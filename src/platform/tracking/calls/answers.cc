#include "platform/tracking/calls/answers.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace tutti::tracking {
namespace {

using nlohmann::json;

struct MlflowError {
  int status;
  const char* code;
};

MlflowError ErrorOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return {400, "INVALID_PARAMETER_VALUE"};
    case absl::StatusCode::kNotFound:
      return {404, "RESOURCE_DOES_NOT_EXIST"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "PERMISSION_DENIED"};
    case absl::StatusCode::kAlreadyExists:
      return {400, "RESOURCE_ALREADY_EXISTS"};
    case absl::StatusCode::kFailedPrecondition:
      return {400, "INVALID_STATE"};
    case absl::StatusCode::kOutOfRange:
      return {413, "BAD_REQUEST"};
    case absl::StatusCode::kUnimplemented:
      return {501, "NOT_IMPLEMENTED"};
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return {503, "TEMPORARILY_UNAVAILABLE"};
    case absl::StatusCode::kResourceExhausted:
      return {507, "RESOURCE_EXHAUSTED"};
    default:
      return {500, "INTERNAL_ERROR"};
  }
}

// Errors may quote bytes of the request, which need not be UTF-8.
std::string Dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Writes a number as protobuf's JSON does.
json NumberJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

void AppendNumber(double value, std::string& text) {
  if (!std::isfinite(value)) return absl::StrAppend(&text, Dumped(NumberJson(value)));
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end);
}

json TagsJsonOf(const std::vector<KeyValue>& rows) {
  json array = json::array();
  for (const KeyValue& row : rows) array.push_back({{"key", row.key}, {"value", row.value}});
  return array;
}

json MetricsJson(const std::vector<Metric>& metrics) {
  json array = json::array();
  for (const Metric& metric : metrics) {
    array.push_back({{"key", metric.key},
                     {"value", NumberJson(metric.point.value)},
                     {"timestamp", metric.point.time},
                     {"step", metric.point.step}});
  }
  return array;
}

json DatasetJson(const Dataset& dataset) {
  json object = {{"name", dataset.name},
                 {"digest", dataset.digest},
                 {"source_type", dataset.source_type},
                 {"source", dataset.source}};
  if (!dataset.schema.empty()) object["schema"] = dataset.schema;
  if (!dataset.profile.empty()) object["profile"] = dataset.profile;
  return object;
}

json InputsJson(const std::vector<DatasetInput>& inputs) {
  json array = json::array();
  for (const DatasetInput& input : inputs) {
    array.push_back({{"dataset", DatasetJson(input.dataset)}, {"tags", TagsJsonOf(input.tags)}});
  }
  return {{"dataset_inputs", std::move(array)}};
}

json ModelsJson(const std::vector<ModelOfRun>& models) {
  json array = json::array();
  for (const ModelOfRun& model : models) {
    array.push_back({{"model_id", model.id}, {"step", model.step}});
  }
  return array;
}

json ModelMetricJson(const ModelMetric& metric) {
  json object = {{"key", metric.metric.key},
                 {"value", NumberJson(metric.metric.point.value)},
                 {"timestamp", metric.metric.point.time},
                 {"step", metric.metric.point.step},
                 {"model_id", metric.metric.model},
                 {"run_id", metric.run}};
  if (metric.metric.dataset_name.empty()) return object;
  object["dataset_name"] = metric.metric.dataset_name;
  object["dataset_digest"] = metric.metric.dataset_digest;
  return object;
}

const char* NameOf(ModelStatus status) {
  switch (status) {
    case ModelStatus::kPending:
      return "LOGGED_MODEL_PENDING";
    case ModelStatus::kReady:
      return "LOGGED_MODEL_READY";
    case ModelStatus::kFailed:
      return "LOGGED_MODEL_UPLOAD_FAILED";
    case ModelStatus::kUnknown:
      break;
  }
  return "LOGGED_MODEL_STATUS_UNSPECIFIED";
}

const char* StageOf(bool deleted) { return deleted ? "deleted" : "active"; }

}  // namespace

http::Response ErrorAnswer(const absl::Status& status) {
  const MlflowError error = ErrorOf(status.code());
  http::Response response = http::JsonResponse(
      Dumped({{"error_code", error.code}, {"message", std::string(status.message())}}),
      error.status);
  if (error.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

http::Response Answer(const json& object) { return http::JsonResponse(Dumped(object)); }

absl::StatusOr<http::Response> Answer(const absl::Status& status) {
  if (!status.ok()) return status;
  return Answer(json::object());
}

json JsonOf(const Experiment& experiment) {
  return {{"experiment_id", absl::StrCat(experiment.id)},
          {"name", experiment.name},
          {"artifact_location", experiment.artifact_location},
          {"lifecycle_stage", StageOf(experiment.deleted)},
          {"creation_time", experiment.created},
          {"last_update_time", experiment.updated},
          {"tags", TagsJsonOf(experiment.tags)}};
}

json JsonOf(const RunInfo& run) {
  json object = {{"run_id", run.id},
                 {"run_uuid", run.id},
                 {"run_name", run.name},
                 {"experiment_id", absl::StrCat(run.experiment)},
                 {"user_id", run.user},
                 {"status", NameOf(run.status)},
                 {"start_time", run.start},
                 {"artifact_uri", run.artifact_uri},
                 {"lifecycle_stage", StageOf(run.deleted)}};
  if (run.end) object["end_time"] = *run.end;
  return object;
}

json JsonOf(const Run& run) {
  json inputs = InputsJson(run.inputs);
  inputs["model_inputs"] = ModelsJson(run.model_inputs);
  return {{"info", JsonOf(run.info)},
          {"data",
           {{"metrics", MetricsJson(run.metrics)},
            {"params", TagsJsonOf(run.params)},
            {"tags", TagsJsonOf(run.tags)}}},
          {"inputs", std::move(inputs)},
          {"outputs", {{"model_outputs", ModelsJson(run.model_outputs)}}}};
}

json JsonOf(const Model& model) {
  json metrics = json::array();
  for (const ModelMetric& metric : model.metrics) metrics.push_back(ModelMetricJson(metric));
  return {{"info",
           {{"model_id", model.id},
            {"experiment_id", absl::StrCat(model.experiment)},
            {"name", model.name},
            {"model_type", model.type},
            {"source_run_id", model.source_run},
            {"status", NameOf(model.status)},
            {"artifact_uri", model.artifact_uri},
            {"creation_timestamp_ms", model.created},
            {"last_updated_timestamp_ms", model.updated},
            {"tags", TagsJsonOf(model.tags)}}},
          {"data", {{"params", TagsJsonOf(model.params)}, {"metrics", std::move(metrics)}}}};
}

absl::string_view NameOf(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "RUNNING";
    case RunStatus::kScheduled:
      return "SCHEDULED";
    case RunStatus::kFinished:
      return "FINISHED";
    case RunStatus::kFailed:
      return "FAILED";
    case RunStatus::kKilled:
      return "KILLED";
  }
  return "RUNNING";
}

void AppendPoint(absl::string_view key, const Point& point, absl::string_view run,
                 std::string& text) {
  absl::StrAppend(&text, R"({"key":)", key, R"(,"value":)");
  AppendNumber(point.value, text);
  absl::StrAppend(&text, R"(,"timestamp":)", point.time, R"(,"step":)", point.step);
  if (!run.empty()) absl::StrAppend(&text, R"(,"run_id":")", run, "\"");
  text += '}';
}

std::string JsonText(absl::string_view text) { return Dumped(json(std::string(text))); }

}  // namespace tutti::tracking
