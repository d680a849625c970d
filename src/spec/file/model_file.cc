#include "spec/file/model_file.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/data/asset.h"
#include "spec/data/data_map.h"
#include "spec/data/local_path.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/other_kinds.h"
#include "spec/types/read_file.h"

namespace tutti::spec {
namespace {

namespace fs = std::filesystem;

constexpr std::array<absl::string_view, 3> kModelTypes = {"custom_model", "mlflow_model",
                                                          "triton_model"};

void ReadModelName(MappingReader& reader, const char* key, std::string& value,
                   Diagnostics& diagnostics) {
  const YamlNode::Entry* const entry = reader.Text(key, value);
  const absl::Status fits = entry ? CheckAssetName(key, value) : absl::OkStatus();
  if (!fits.ok()) diagnostics.Error(entry->line, fits.message());
}

// A path here, or an address of what a job has left.
absl::Status TakeModelPath(const std::string& written, const fs::path& base, ModelFile& model) {
  auto of_job = OutputOfAddress(written);
  if (absl::IsNotFound(of_job.status())) {
    TUTTI_ASSIGN_OR_RETURN(model.path, LocalPath(written, base));
    return absl::OkStatus();
  }
  TUTTI_RETURN_IF_ERROR(of_job.status());
  model.job = std::move(of_job->job);
  model.path_of_job = std::move(of_job->path);
  return absl::OkStatus();
}

void ReadModelPath(MappingReader& reader, int line, const fs::path& base, ModelFile& model,
                   Diagnostics& diagnostics) {
  std::string written;
  const YamlNode::Entry* const entry = reader.Text("path", written);
  if (entry == nullptr || written.empty()) {
    return diagnostics.Error(line, "the key \"path\" is missing: say where the model lies");
  }
  const absl::Status taken = TakeModelPath(written, base, model);
  if (!taken.ok()) diagnostics.Error(entry->line, taken.message());
}

}  // namespace

absl::StatusOr<ModelFile> ReadModelText(absl::string_view text, absl::string_view file_name,
                                        const fs::path& base) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  Diagnostics diagnostics{std::string(file_name)};
  TUTTI_RETURN_IF_ERROR(CheckKind("model", *root, diagnostics));
  MappingReader reader(*root, "a model file", diagnostics, {"model", ""});
  ModelFile model;
  std::string unused;
  reader.Text("$schema", unused);
  ReadModelName(reader, "name", model.name, diagnostics);
  ReadModelName(reader, "version", model.version, diagnostics);
  reader.Choice("type", kModelTypes, model.type);
  reader.Text("description", model.description);
  ReadModelName(reader, "stage", model.stage, diagnostics);
  reader.TextMap("tags", model.tags);
  reader.TextMap("properties", model.properties);
  ReadModelPath(reader, root->line, base, model, diagnostics);
  reader.Finish();
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  model.warnings = diagnostics.warnings();
  return model;
}

absl::StatusOr<ModelFile> ReadModelFile(const std::string& file) {
  const fs::path path = fs::absolute(file);
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadFromDisk(path));
  return ReadModelText(text, file, path.parent_path());
}

}  // namespace tutti::spec
