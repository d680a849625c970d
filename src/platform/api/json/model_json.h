// Converts registered models to the JSON of docs/formats/rest.md, and requests from it. Pure
// functions. Text that is not UTF-8 has U+FFFD for the bytes that are not.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/models/registered_models.h"

namespace tutti::api {

// ModelRequest is what POST /v1/models asks for.
struct ModelRequest {
  service::ModelCreation creation;
  // In place of files they name what a job has left at a path, or at an address that says both.
  // Empty: the files have been sent.
  std::string job, path;
};
// InvalidArgument says where it is wrong.
absl::StatusOr<ModelRequest> ModelRequestFromJson(absl::string_view body);
// Reads what is to change: of a version, or of a model, which has neither stage nor properties.
absl::StatusOr<service::ModelChange> ModelChangeFromJson(absl::string_view body, bool of_version);
// Reads {"version": TEXT}.
absl::StatusOr<std::string> VersionFromJson(absl::string_view body);

std::string ModelVersionJson(const service::ModelVersion& version);
// Returns the same with its files.
std::string ModelVersionJson(const service::ModelVersion& version,
                             const service::ModelContent& content);
std::string ModelVersionsJson(const service::VersionPage& page);
std::string ModelJson(const service::RegisteredModel& model);
std::string ModelsJson(const std::vector<service::RegisteredModel>& models, bool more);

}  // namespace tutti::api
