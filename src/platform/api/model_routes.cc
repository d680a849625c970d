#include "platform/api/model_routes.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/api/file_answer.h"
#include "platform/api/json/model_json.h"
#include "platform/api/routing/query.h"

namespace tutti::api {
namespace {

using http::ErrorResponse;
using http::JsonResponse;
using http::Pace;
using http::Response;
using service::Service;

constexpr uint64_t kMaxBody = 16 << 20;
constexpr uint64_t kMaxChange = 4 << 20;
constexpr uint64_t kMaxFile = uint64_t{1} << 40;
constexpr int kMostListed = 1000;

Response HasModelFile(Service* service, const Call& call) {
  return AnswerByFileWork({service, Service::FileWork::kSnapshots, call["file"]}, call.connection,
                          [service, name = call["file"]] {
                            const absl::Status found = service->models().contents().Find(name);
                            return found.ok() ? JsonResponse("{}") : ErrorResponse(found);
                          });
}

absl::Status ReceiveModelFile(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(auto upload, service->models().contents().Begin(
                                          call["file"], call.connection.ContentLength()));
  TUTTI_RETURN_IF_ERROR(call.connection.ReadBodyTo(
      [&](absl::string_view bytes) { return upload.Write(bytes); }, kMaxFile));
  return upload.Commit();
}

Response PutModelFile(Service* service, const Call& call) {
  const absl::Status status = ReceiveModelFile(service, call);
  return status.ok() ? JsonResponse("{}", 201) : ErrorResponse(status);
}

Response VersionResponse(Service* service, const service::ModelVersion& version, int status = 200) {
  const auto content = service->models().ContentOf(version);
  return content.ok() ? JsonResponse(ModelVersionJson(version, *content), status)
                      : ErrorResponse(content.status());
}

Response Register(Service* service, const Call& call) {
  const auto body = call.connection.ReadBody(kMaxBody);
  if (!body.ok()) return ErrorResponse(body.status());
  const auto request = ModelRequestFromJson(*body);
  if (!request.ok()) return ErrorResponse(request.status());
  const auto registered =
      request->job.empty()
          ? service->models().Register(request->creation)
          : service->RegisterFromJob(request->creation, request->job, request->path);
  if (!registered.ok()) return ErrorResponse(registered.status());
  return VersionResponse(service, registered->version, registered->is_new ? 201 : 200);
}

absl::StatusOr<std::optional<bool>> ArchivedOf(const http::Request& request) {
  const absl::string_view said = request.Query("archived");
  if (said == "all") return std::optional<bool>();
  TUTTI_ASSIGN_OR_RETURN(const bool archived, QueryFlag(request, "archived", false));
  return std::optional(archived);
}

Response List(Service* service, const Call& call) {
  const auto archived = ArchivedOf(call.request);
  if (!archived.ok()) return ErrorResponse(archived.status());
  const auto limit = QueryNumber(call.request, "limit", 100, 1, kMostListed);
  if (!limit.ok()) return ErrorResponse(limit.status());
  auto models = service->models().List(std::string(call.request.Query("after")),
                                       static_cast<int>(*limit) + 1, *archived);
  if (!models.ok()) return ErrorResponse(models.status());
  const bool more = models->size() > static_cast<size_t>(*limit);
  if (more) models->pop_back();
  return JsonResponse(ModelsJson(*models, more));
}

Response ModelResponse(Service* service, const std::string& name) {
  const auto model = service->models().FindModel(name);
  return model.ok() ? JsonResponse(ModelJson(*model)) : ErrorResponse(model.status());
}

Response ListVersions(Service* service, const Call& call) {
  const auto limit = QueryNumber(call.request, "limit", 100, 1, kMostListed);
  if (!limit.ok()) return ErrorResponse(limit.status());
  const auto before = QueryNumber(call.request, "before", 0, 0);
  if (!before.ok()) return ErrorResponse(before.status());
  const auto page =
      service->models().ListVersions(call["model"], *before, static_cast<int>(*limit));
  return page.ok() ? JsonResponse(ModelVersionsJson(*page)) : ErrorResponse(page.status());
}

Response GetVersion(Service* service, const Call& call) {
  const auto version = service->models().Find(call["model"], call["version"]);
  if (!version.ok()) return ErrorResponse(version.status());
  return VersionResponse(service, *version);
}

// Changes a version, or with "" the model.
absl::Status ChangeIt(Service* service, const Call& call, const std::string& version) {
  TUTTI_ASSIGN_OR_RETURN(const std::string body, call.connection.ReadBody(kMaxChange));
  TUTTI_ASSIGN_OR_RETURN(const service::ModelChange change,
                         ModelChangeFromJson(body, /*of_version=*/!version.empty()));
  return service->models().Change(call["model"], version, change);
}

Response ChangeVersion(Service* service, const Call& call) {
  const absl::Status status = ChangeIt(service, call, call["version"]);
  return status.ok() ? GetVersion(service, call) : ErrorResponse(status);
}

Response ChangeModel(Service* service, const Call& call) {
  const absl::Status status = ChangeIt(service, call, "");
  return status.ok() ? ModelResponse(service, call["model"]) : ErrorResponse(status);
}

Response DoneOr(const absl::Status& status) {
  return status.ok() ? JsonResponse("{}") : ErrorResponse(status);
}

Response DeleteVersion(Service* service, const Call& call) {
  return DoneOr(service->DeleteModel(call["model"], call["version"]));
}

Response SetAlias(Service* service, const Call& call) {
  const auto body = call.connection.ReadBody(kMaxChange);
  if (!body.ok()) return ErrorResponse(body.status());
  const auto version = VersionFromJson(*body);
  if (!version.ok()) return ErrorResponse(version.status());
  return DoneOr(service->models().SetAlias(call["model"], call["alias"], *version));
}

Response ModelFileResponse(Service* service, const std::string& name, const std::string& version,
                           const std::string& path) {
  const auto found = service->models().Find(name, version);
  if (!found.ok()) return ErrorResponse(found.status());
  const auto file = service->models().FileOf(*found, path);
  if (!file.ok()) return ErrorResponse(file.status());
  return DownloadResponse("application/octet-stream", *file);
}

Response GetModelFile(Service* service, const Call& call) {
  return AnswerByFileWork(
      {service, Service::FileWork::kSnapshots, absl::StrCat("model:", call["model"])},
      call.connection,
      [service, name = call["model"], version = call["version"], path = call["path"]] {
        return ModelFileResponse(service, name, version, path);
      });
}

}  // namespace

std::vector<Route> ModelRoutes(Service* service) {
  const auto with = [service](Response (*answer)(Service*, const Call&)) {
    return [service, answer](const Call& call) { return answer(service, call); };
  };
  const std::string model = "/v1/models/{model}", version = model + "/versions/{version}";
  const std::string file = "/v1/model-files/{file}", alias = model + "/aliases/{alias}";
  return {
      {"HEAD", file, Access::kUser, with(HasModelFile)},
      {"PUT", file, Access::kUser, with(PutModelFile), Pace::kReceives},
      {"GET", "/v1/models", Access::kUser, with(List)},
      {"POST", "/v1/models", Access::kUser, with(Register), Pace::kForeign, "models"},
      {"GET", model, Access::kUser,
       [service](const Call& call) { return ModelResponse(service, call["model"]); }},
      {"PATCH", model, Access::kUser, with(ChangeModel), Pace::kSlow, "model changes"},
      {"DELETE", model, Access::kUser,
       [service](const Call& call) { return DoneOr(service->DeleteModel(call["model"], "")); },
       Pace::kSlow, "model changes"},
      {"GET", model + "/versions", Access::kUser, with(ListVersions)},
      {"GET", version, Access::kUser, with(GetVersion)},
      {"PATCH", version, Access::kUser, with(ChangeVersion), Pace::kSlow, "model changes"},
      {"DELETE", version, Access::kUser, with(DeleteVersion), Pace::kSlow, "model changes"},
      {"GET", version + "/files/{path...}", Access::kUser, with(GetModelFile), Pace::kQuick,
       "model"},
      {"PUT", alias, Access::kUser, with(SetAlias), Pace::kSlow, "model changes"},
      {"DELETE", alias, Access::kUser,
       [service](const Call& call) {
         return DoneOr(service->models().RemoveAlias(call["model"], call["alias"]));
       },
       Pace::kSlow, "model changes"},
  };
}

}  // namespace tutti::api
