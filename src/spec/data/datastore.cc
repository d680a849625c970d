#include "spec/data/datastore.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/data/home_list.h"
#include "spec/json/json_fields.h"
#include "spec/json/place_json.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr char kDatastoresKey[] = "datastores";

absl::StatusOr<Datastore> DatastoreOf(const json& document, const std::string& path) {
  Datastore datastore;
  JsonFields fields(document, path, Missing::kKeepsDefault);
  fields.Read("name", datastore.name);
  fields.Read("type", datastore.type);
  fields.Read("description", datastore.description);
  fields.Read("tags", datastore.tags);
  if (document.is_object() && document.contains("place")) {
    fields.Ignore("place");
    fields.Update(ReadPlace(document["place"], fields.PathOf("place"), datastore.place));
  }
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return datastore;
}

// Returns what adds the entries of a list.
EachEntry AddTo(Datastores& datastores) {
  return [&datastores](const json& entry, const std::string& location) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(Datastore datastore, DatastoreOf(entry, location));
    const std::string name = datastore.name;
    datastores[name] = std::move(datastore);
    return absl::OkStatus();
  };
}

}  // namespace

json JsonOf(const Datastore& datastore) {
  return {{"name", datastore.name},
          {"type", datastore.type},
          {"description", datastore.description},
          {"tags", datastore.tags},
          {"place", JsonOf(datastore.place)}};
}

json JsonOf(const Datastores& datastores) {
  json list = json::array();
  for (const auto& [name, datastore] : datastores) list.push_back(JsonOf(datastore));
  return list;
}

absl::StatusOr<Datastores> DatastoresFromJson(absl::string_view text, const std::string& file) {
  Datastores datastores;
  TUTTI_RETURN_IF_ERROR(ReadListText(text, file, kDatastoresKey, AddTo(datastores)));
  return datastores;
}

std::filesystem::path DatastoresFile(const std::filesystem::path& home) {
  return home / "datastores.json";
}

absl::StatusOr<Datastores> ReadDatastores(const std::filesystem::path& home) {
  Datastores datastores;
  TUTTI_RETURN_IF_ERROR(ReadList(DatastoresFile(home), kDatastoresKey, AddTo(datastores)));
  return datastores;
}

absl::Status WriteDatastores(const std::filesystem::path& home, const Datastores& datastores) {
  return WriteList(DatastoresFile(home), kDatastoresKey, JsonOf(datastores));
}

}  // namespace tutti::spec
