#include "platform/tracking/tracking_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/tracking/calls/answers.h"
#include "platform/tracking/calls/calls.h"
#include "platform/tracking/calls/job_scope.h"
#include "platform/tracking/calls/model_calls.h"
#include "platform/tracking/calls/request_fields.h"

namespace tutti::tracking {
namespace {

using http::Response;
using nlohmann::json;

constexpr uint64_t kMostBody = uint64_t{4} << 20;
constexpr uint64_t kMostArtifact = uint64_t{1} << 42;
constexpr absl::string_view kOwnRoot = "mlflow-artifacts:/";

struct Refused {
  absl::string_view name, what;  // also of all below that
  absl::string_view instead = "";
};
constexpr absl::string_view kModelsByName = ": `tutti model register` keeps models by name";
constexpr Refused kRefused[] = {
    {"registered-models", "MLflow's model registry", kModelsByName},
    {"model-versions", "MLflow's model registry", kModelsByName},
    {"traces", "MLflow's traces"},
    {"unified-traces", "MLflow's traces"},
    {"datasets", "MLflow 3's evaluation data sets"},
    {"experiments/search-datasets", "the search for data sets"},
    {"scorers", "MLflow 3's scorers"},
    {"gateway", "MLflow's gateway"},
    {"webhooks", "MLflow's webhooks"},
    {"workspaces", "MLflow's workspaces"},
    {"artifacts/presigned", "signed addresses for artifacts"},
    {"mpu", "uploads in parts"},
};

absl::Status NoSuchCall(absl::string_view call) {
  for (const Refused& refused : kRefused) {
    absl::string_view rest = call;
    if (!absl::ConsumePrefix(&rest, refused.name)) continue;
    if (!rest.empty() && rest.front() != '/') continue;
    return absl::UnimplementedError(absl::StrCat("tutti's tracking does not have ", refused.what,
                                                 " (", call, ")", refused.instead));
  }
  return absl::NotFoundError(absl::StrCat("there is no call ", call));
}

Response NoEndpoint(absl::string_view call) {
  const absl::Status status = NoSuchCall(call);
  if (!absl::IsNotFound(status)) return ErrorAnswer(status);
  return http::JsonResponse(
      json({{"error_code", "ENDPOINT_NOT_FOUND"}, {"message", std::string(status.message())}})
          .dump(-1, ' ', false, json::error_handler_t::replace),
      404);
}

const ApiCall* FindCall(absl::string_view method, absl::string_view name) {
  for (const auto calls : {ExperimentCalls(), RunCalls(), LogCalls(), MetricCalls()}) {
    for (const ApiCall& call : calls) {
      if (call.method == method && call.name == name) return &call;
    }
  }
  return nullptr;
}

absl::StatusOr<json> RequestOf(const http::Request& request, http::Connection& connection) {
  if (request.method == "GET") return QueryObject(request);
  TUTTI_ASSIGN_OR_RETURN(const std::string body, connection.ReadBody(kMostBody));
  return ParseRequest(body);
}

json EntriesJson(const std::vector<ArtifactEntry>& entries, absl::string_view below) {
  json files = json::array();
  for (const ArtifactEntry& entry : entries) {
    json file = {{"path", below.empty() ? entry.name : absl::StrCat(below, "/", entry.name)},
                 {"is_dir", entry.is_folder}};
    if (!entry.is_folder) file["file_size"] = entry.bytes;
    files.push_back(std::move(file));
  }
  return files;
}

// Lists what lies at `path` below an address of artifacts.
absl::StatusOr<Response> Listed(const ArtifactStore& artifacts, const std::string& uri,
                                const std::string& path) {
  TUTTI_RETURN_IF_ERROR(ArtifactPath(path).status());
  absl::string_view folder = uri;
  if (!absl::ConsumePrefix(&folder, kOwnRoot)) {
    return absl::UnimplementedError(
        absl::StrCat("these artifacts lie at ", uri, ", which the client reads itself"));
  }
  TUTTI_ASSIGN_OR_RETURN(
      const std::vector<ArtifactEntry> entries,
      artifacts.List(path.empty() ? std::string(folder) : absl::StrCat(folder, "/", path)));
  return Answer({{"root_uri", uri}, {"files", EntriesJson(entries, path)}});
}

absl::StatusOr<Response> ListedOfRun(TrackingStore& store, const ArtifactStore& artifacts,
                                     RequestFields& fields) {
  const std::string id = RunIn(fields);
  const std::string path = fields.Text("path", Need::kOptional);
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const RunInfo run, store.GetRunInfo(id));
  return Listed(artifacts, run.artifact_uri, path);
}

absl::StatusOr<Response> ListedOfModel(TrackingStore& store, const ArtifactStore& artifacts,
                                       const std::string& id, RequestFields& fields) {
  const std::string path = fields.Text("artifact_directory_path", Need::kOptional);
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const Model model, store.GetModel(id));
  return Listed(artifacts, model.artifact_uri, path);
}

const BatchCall* FindBatchCall(absl::string_view method, absl::string_view name) {
  for (const BatchCall& call : BatchCalls()) {
    if (method == "POST" && call.name == name) return &call;
  }
  return nullptr;
}

// The connection waits for it without a thread.
absl::StatusOr<Response> Logged(LogQueue& logs, absl::StatusOr<LogRequest> request,
                                http::Connection& connection) {
  TUTTI_RETURN_IF_ERROR(request.status());
  TUTTI_ASSIGN_OR_RETURN(
      const auto pending,
      logs.Add(std::move(request->run), std::move(request->batch), connection.Waker()));
  Response response;
  response.later = [pending](base::Deadline&) -> std::optional<Response> {
    const std::optional<absl::Status> result = pending->result();
    if (!result) return std::nullopt;
    return result->ok() ? Answer(json::object()) : ErrorAnswer(*result);
  };
  return response;
}

Response AnswerOf(absl::StatusOr<Response> answer) {
  return answer.ok() ? *std::move(answer) : ErrorAnswer(answer.status());
}

}  // namespace

Response TrackingServer::Call(absl::string_view call, const http::Request& request,
                              http::Connection& connection, const std::string& job_run) {
  const ApiCall* const known = FindCall(request.method, call);
  const BatchCall* const batch = FindBatchCall(request.method, call);
  const ModelCall* const model = FindModelCall(request.method, call);
  if (known == nullptr && batch == nullptr && model == nullptr) return NoEndpoint(call);
  const absl::StatusOr<json> object = RequestOf(request, connection);
  if (!object.ok()) return ErrorAnswer(object.status());
  RequestFields fields(*object);
  fields.set_job_run(job_run);
  if (!job_run.empty()) {
    const absl::Status may = CheckScope(*store_, job_run, request.method, call, fields);
    if (!may.ok()) return ErrorAnswer(may);
  }
  if (batch != nullptr) {
    auto read = batch->read(fields);
    if (read.ok() && !job_run.empty()) {
      const absl::Status may = CheckModelsOfBatch(*store_, job_run, read->batch);
      if (!may.ok()) return ErrorAnswer(may);
    }
    return AnswerOf(Logged(logs_, std::move(read), connection));
  }
  if (model != nullptr) return AnswerOf(AnswerModelCall(*model, *store_, call, fields));
  return AnswerOf(known->answer(*store_, fields));
}

Response TrackingServer::ListArtifactsOfRun(const http::Request& request) {
  const json object = QueryObject(request);
  RequestFields fields(object);
  return AnswerOf(ListedOfRun(*store_, *artifacts_, fields));
}

Response TrackingServer::ListArtifactsOfModel(const std::string& model,
                                              const http::Request& request) {
  const json object = QueryObject(request);
  RequestFields fields(object);
  return AnswerOf(ListedOfModel(*store_, *artifacts_, model, fields));
}

Response TrackingServer::ListArtifacts(const http::Request& request) {
  const auto entries = artifacts_->List(request.Query("path"));
  if (!entries.ok()) return ErrorAnswer(entries.status());
  return Answer({{"files", EntriesJson(*entries, "")}});
}

Response TrackingServer::GetArtifact(absl::string_view path) {
  const auto file = artifacts_->Find(path);
  if (!file.ok()) return ErrorAnswer(file.status());
  Response response;
  response.content_type = "application/octet-stream";
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Content-Disposition", "attachment");
  response.file = *file;
  return response;
}

Response TrackingServer::PutArtifact(absl::string_view path, http::Connection& connection,
                                     const std::string& job_run) {
  if (!job_run.empty()) {
    const absl::Status may = CheckArtifactScope(*store_, job_run, "PUT", path);
    if (!may.ok()) return ErrorAnswer(may);
  }
  const auto upload = artifacts_->Begin(path, connection.ContentLength());
  if (!upload.ok()) return ErrorAnswer(upload.status());
  absl::Status status = connection.ReadBodyTo(
      [&](absl::string_view bytes) { return (*upload)->Write(bytes); }, kMostArtifact);
  if (status.ok()) status = (*upload)->Commit();
  return status.ok() ? Answer(json::object()) : ErrorAnswer(status);
}

Response TrackingServer::DeleteArtifact(absl::string_view path, const std::string& job_run) {
  absl::Status status =
      job_run.empty() ? absl::OkStatus() : CheckArtifactScope(*store_, job_run, "DELETE", path);
  if (status.ok()) status = artifacts_->Remove(path);
  return status.ok() ? Answer(json::object()) : ErrorAnswer(status);
}

}  // namespace tutti::tracking
