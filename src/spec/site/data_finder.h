// Finds what the address of an input, or of a table's path, stands for on this machine. Inside the
// room spec only. Thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/site/site.h"

namespace tutti::spec {

struct NamedData {
  std::string address;  // or a path
  std::string type;     // of a data asset; else empty
  std::string asset;    // "azureml:NAME:1" of a data asset; else empty
};
// Returns what a data asset is of, "azureml:NAME:1" that has no copy of its own (tutti data map);
// any other text as it is. NotFound for a version that is not there, of a name that is.
absl::StatusOr<NamedData> ResolveAsset(const std::string& written, const Site& site);

// Returns whether an input of that type is a model: custom_model, mlflow_model, triton_model.
bool IsModelType(absl::string_view type);

// Returns the registered model that `written`, "azureml:NAME:1" or "azureml:NAME@LABEL", means for
// an input of that type, and "azureml:NAME:VERSION". Nothing if it means none: data of that name,
// or a copy that is mapped, come first where the type is no model's, and stand in for a version
// that is not registered. NotFound says what to do; other errors are those of Site::find_model.
struct NamedModel {
  ModelHere model;
  std::string asset;
};
absl::StatusOr<std::optional<NamedModel>> ResolveModel(const std::string& written,
                                                       absl::string_view type, const Site& site);

struct DataHere {
  std::string path;        // absolute
  std::string pattern;     // of an address with wildcards: which files below the path; else empty
  std::string job_folder;  // of an earlier job, whose result it is; else empty
};
// Returns where it lies: a path, which counts from `base`; the copy that the address has; an
// earlier job's output, of the type uri_file its one file; a datastore that is a folder. Of an
// address with "*", "**" or "?" it is the folder above the first, as in stores. NotFound for an
// address of nothing here.
absl::StatusOr<DataHere> FindHere(const std::string& address, absl::string_view type,
                                  const std::filesystem::path& base, const Site& site);

// Returns how what an address names can be made known here: "copy it here and say where: …".
std::string AdviceToMap(absl::string_view address);

}  // namespace tutti::spec
