// What the service tells of registered models: docs/formats/rest.md. Times are RFC 3339, UTC, with
// microseconds; a text that is not known is empty.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/views/job_view.h"
#include "spec/views/view_fields.h"

namespace tutti::spec {

inline constexpr const char* kModelTypes[] = {"custom_model", "mlflow_model", "triton_model"};

struct ModelView {
  static constexpr char kSchema[] = "Model";
  std::string name, description;
  std::map<std::string, std::string> tags, aliases;
  bool archived = false;
  std::string created, changed, latest;
  int64_t versions = 0;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &ModelView::name);
    visitor.Field("description", &ModelView::description);
    visitor.Field("tags", &ModelView::tags);
    visitor.Field("aliases", &ModelView::aliases, "to their versions");
    visitor.Field("archived", &ModelView::archived);
    visitor.Field("created", &ModelView::created, kTime);
    visitor.Field("changed", &ModelView::changed, kTime);
    visitor.Field("latest", &ModelView::latest, kNullIfEmpty,
                  "the newest version that is not archived");
    visitor.Field("versions", &ModelView::versions, "how many there are");
  }
};

struct ModelsView {
  static constexpr char kSchema[] = "Models";
  std::vector<ModelView> models;
  std::string after;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("models", &ModelsView::models, kNeeded);
    visitor.Field("after", &ModelsView::after, kNullIfEmpty, "`after` of the next page");
  }
};

struct ModelFileView : FileView {
  static constexpr char kSchema[] = "ModelFile";
  std::string sha256;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    FileView::Fields(visitor);
    visitor.Field("sha256", &ModelFileView::sha256);
  }
};

// One of the inputs of the job that a model was made by.
struct LineageInputView {
  static constexpr char kSchema[] = "LineageInput";
  std::string input, asset, address;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("input", &LineageInputView::input);
    visitor.Field("asset", &LineageInputView::asset);
    visitor.Field("address", &LineageInputView::address);
  }
};

struct LineageEnvironmentView {
  static constexpr char kSchema[] = "LineageEnvironment";
  std::string name;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &LineageEnvironmentView::name);
  }
};

// What of a version's `lineage` is shown. It is kept as JSON, since a client may give any other.
struct LineageView {
  static constexpr char kSchema[] = "Lineage";
  std::string job, path, submitted, experiment, command, code;
  LineageEnvironmentView environment;
  std::vector<LineageInputView> data;
  std::map<std::string, std::string> values;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("job", &LineageView::job);
    visitor.Field("path", &LineageView::path);
    visitor.Field("submitted", &LineageView::submitted);
    visitor.Field("experiment", &LineageView::experiment);
    visitor.Field("command", &LineageView::command);
    visitor.Field("code", &LineageView::code);
    visitor.Field("environment", &LineageView::environment);
    visitor.Field("data", &LineageView::data);
    visitor.Field("values", &LineageView::values);
  }
};

struct ModelVersionView {
  static constexpr char kSchema[] = "ModelVersion";
  std::string id, name, version, type, description, stage;
  std::map<std::string, std::string> tags, properties;
  std::vector<std::string> aliases;
  bool archived = false;
  std::string created, changed, digest, file;
  int64_t file_count = 0;
  uint64_t bytes = 0;
  JsonText lineage;
  std::optional<std::vector<ModelFileView>> files;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("id", &ModelVersionView::id, "as jobs name it: azureml:NAME:VERSION");
    visitor.Field("name", &ModelVersionView::name);
    visitor.Field("version", &ModelVersionView::version);
    visitor.Field("type", &ModelVersionView::type, Form{.values = kModelTypes});
    visitor.Field("description", &ModelVersionView::description);
    visitor.Field("stage", &ModelVersionView::stage, kNullIfEmpty,
                  "Staging, Production or another word");
    visitor.Field("tags", &ModelVersionView::tags);
    visitor.Field("properties", &ModelVersionView::properties);
    visitor.Field("aliases", &ModelVersionView::aliases);
    visitor.Field("archived", &ModelVersionView::archived);
    visitor.Field("created", &ModelVersionView::created, kTime);
    visitor.Field("changed", &ModelVersionView::changed, kTime);
    visitor.Field("digest", &ModelVersionView::digest, "of its files: equal ones have the same");
    visitor.Field("file", &ModelVersionView::file, kNullIfEmpty,
                  "its name, if the model is one file");
    visitor.Field("file_count", &ModelVersionView::file_count);
    visitor.Field("bytes", &ModelVersionView::bytes);
    visitor.Field("lineage", &ModelVersionView::lineage,
                  "of one that a job left: job, path, submitted, experiment, command, code (the "
                  "snapshot), environment, data (input, type, asset, address) and values");
    visitor.Field("files", &ModelVersionView::files, kAbsentIfNone, "not in lists");
  }
};

struct ModelVersionsView {
  static constexpr char kSchema[] = "ModelVersions";
  std::vector<ModelVersionView> versions;
  std::optional<int64_t> before;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("versions", &ModelVersionsView::versions, kNeeded);
    visitor.Field("before", &ModelVersionsView::before, "`before` of the next page");
  }
};

}  // namespace tutti::spec
