#include "platform/api/json/model_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/api/json/json_values.h"
#include "spec/data/data_map.h"
#include "spec/json/json_fields.h"
#include "spec/views/model_view.h"
#include "spec/views/view_writer.h"

namespace tutti::api {
namespace {

using json = OrderedJson;
using spec::JsonFields;
using spec::Missing;
using spec::ViewWriter;

absl::StatusOr<nlohmann::json> BodyOf(absl::string_view body) {
  return spec::ParseJsonObject(body, "the body");
}

absl::Status ReadFiles(const nlohmann::json& list, std::vector<service::ModelFile>& files) {
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields fields(list[i], absl::StrCat("files[", i, "]"), Missing::kIsAnError);
    service::ModelFile file;
    int64_t bytes = 0;
    fields.Read("path", file.path);
    fields.Read("sha256", file.sha256);
    fields.Read("bytes", bytes, 0);
    TUTTI_RETURN_IF_ERROR(fields.Finish());
    file.bytes = static_cast<uint64_t>(bytes);
    files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

// "azureml://jobs/JOB/outputs/NAME".
absl::Status ReadAddress(JsonFields& fields, ModelRequest& request) {
  std::string address;
  fields.Read("address", address);
  auto output = spec::OutputOfAddress(address);
  if (!output.ok()) return absl::InvalidArgumentError(output.status().message());
  request.job = std::move(output->job);
  request.path = std::move(output->path);
  return absl::OkStatus();
}

// As it was given; nothing if it is not known.
spec::JsonText LineageOf(const service::ModelVersion& version) {
  const json lineage = json::parse(version.lineage, nullptr, /*allow_exceptions=*/false);
  return {lineage.is_object() ? Text(lineage) : ""};
}

spec::ModelVersionView ViewOf(const service::ModelVersion& version) {
  return {.id = absl::StrCat("azureml:", version.name, ":", version.version),
          .name = version.name,
          .version = version.version,
          .type = version.type,
          .description = version.description,
          .stage = version.stage,
          .tags = version.tags,
          .properties = version.properties,
          .aliases = version.aliases,
          .archived = version.archived,
          .created = spec::Rfc3339(version.created),
          .changed = spec::Rfc3339(version.changed),
          .digest = absl::StrCat("sha256:", version.digest),
          .file = version.file,
          .file_count = version.file_count,
          .bytes = version.bytes,
          .lineage = LineageOf(version)};
}

spec::ModelView ViewOf(const service::RegisteredModel& model) {
  return {.name = model.name,
          .description = model.description,
          .tags = model.tags,
          .aliases = model.aliases,
          .archived = model.archived,
          .created = spec::Rfc3339(model.created),
          .changed = spec::Rfc3339(model.changed),
          .latest = model.latest,
          .versions = model.versions};
}

}  // namespace

absl::StatusOr<ModelRequest> ModelRequestFromJson(absl::string_view body) {
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json document, BodyOf(body));
  ModelRequest request;
  service::ModelCreation& creation = request.creation;
  JsonFields fields(document, "", Missing::kIsAnError);
  fields.Read("name", creation.name);
  fields.ReadIfThere("version", creation.version);
  fields.ReadIfThere("type", creation.type);
  fields.ReadIfThere("description", creation.description);
  fields.ReadIfThere("stage", creation.stage);
  fields.ReadIfThere("tags", creation.tags);
  fields.ReadIfThere("properties", creation.properties);
  fields.ReadIfThere("nonce", creation.nonce);
  fields.ReadIfThere("is_file", creation.content.is_file);
  if (document.contains("job")) {
    fields.Read("job", request.job);
    fields.Read("path", request.path);
    if (request.job.empty()) fields.Fail("job must not be empty");
  } else if (document.contains("address")) {
    TUTTI_RETURN_IF_ERROR(ReadAddress(fields, request));
  } else if (const nlohmann::json* const files = fields.Array("files")) {
    fields.Update(ReadFiles(*files, creation.content.files));
  }
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return request;
}

absl::StatusOr<service::ModelChange> ModelChangeFromJson(absl::string_view body, bool of_version) {
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json document, BodyOf(body));
  service::ModelChange change;
  JsonFields fields(document, "", Missing::kIsAnError);
  if (document.contains("description")) {
    fields.Read("description", change.description.emplace());
  }
  if (document.contains("tags")) fields.Read("tags", change.tags.emplace());
  if (document.contains("archived")) fields.Read("archived", change.archived.emplace());
  if (of_version && document.contains("stage")) fields.Read("stage", change.stage.emplace());
  if (of_version && document.contains("properties")) {
    fields.Read("properties", change.properties.emplace());
  }
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return change;
}

absl::StatusOr<std::string> VersionFromJson(absl::string_view body) {
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json document, BodyOf(body));
  JsonFields fields(document, "", Missing::kIsAnError);
  std::string version;
  fields.Read("version", version);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return version;
}

std::string ModelVersionJson(const service::ModelVersion& version) {
  return ViewWriter::Text(ViewOf(version));
}

std::string ModelVersionJson(const service::ModelVersion& version,
                             const service::ModelContent& content) {
  spec::ModelVersionView view = ViewOf(version);
  view.files.emplace();
  for (const service::ModelFile& file : content.files) {
    view.files->push_back({{.path = file.path, .bytes = file.bytes}, file.sha256});
  }
  return ViewWriter::Text(view);
}

std::string ModelVersionsJson(const service::VersionPage& page) {
  spec::ModelVersionsView view;
  for (const service::ModelVersion& version : page.versions) {
    view.versions.push_back(ViewOf(version));
  }
  if (page.before != 0) view.before = page.before;
  return ViewWriter::Text(view);
}

std::string ModelJson(const service::RegisteredModel& model) {
  return ViewWriter::Text(ViewOf(model));
}

std::string ModelsJson(const std::vector<service::RegisteredModel>& models, bool more) {
  spec::ModelsView view;
  for (const service::RegisteredModel& model : models) view.models.push_back(ViewOf(model));
  if (more && !models.empty()) view.after = models.back().name;
  return ViewWriter::Text(view);
}

}  // namespace tutti::api
