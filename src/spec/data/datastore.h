// Keeps datastores: `tutti datastore create --file datastore.yml` gives a container of a store, or
// a folder, a name, by which jobs take data from it: azureml://datastores/NAME/paths/PATH. The list
// lies in HOME/datastores.json, without credentials: they are a secret of the service, which the
// datastore names.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/types/data_place.h"

namespace tutti::spec {

struct Datastore {
  std::string name;  // letters, digits, "-" and "_"
  std::string type;  // as its file writes it: azure_blob, azure_data_lake_gen2, s3, nfs, …
  std::string description;
  std::map<std::string, std::string> tags;
  DataPlace place;  // all that it holds; its `datastore` is `name`
};

using Datastores = std::map<std::string, Datastore>;  // by name

// Returns the JSON of one, and of all: an array, as HOME/datastores.json and `tutti datastore list`
// have it.
nlohmann::json JsonOf(const Datastore& datastore);
nlohmann::json JsonOf(const Datastores& datastores);

absl::StatusOr<Datastores> DatastoresFromJson(absl::string_view text, const std::string& file);
std::filesystem::path DatastoresFile(const std::filesystem::path& home);
absl::StatusOr<Datastores> ReadDatastores(const std::filesystem::path& home);
absl::Status WriteDatastores(const std::filesystem::path& home, const Datastores& datastores);

}  // namespace tutti::spec
