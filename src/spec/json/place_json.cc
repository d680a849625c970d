#include "spec/json/place_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "spec/json/json_fields.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {
using nlohmann::json;

json JsonOf(const DataPlace& place) {
  json document = {{"kind", std::string(StoreName(place.kind))},
                   {"account", place.account},
                   {"container", place.container},
                   {"endpoint", place.endpoint},
                   {"region", place.region},
                   {"path", place.path},
                   {"pattern", place.is_pattern},
                   {"credential", std::string(CredentialName(place.credential))},
                   {"secret", place.secret},
                   {"datastore", place.datastore}};
  if (place.has_classes) document["classes"] = true;
  if (!place.root.empty()) document["root"] = place.root;
  return document;
}

absl::Status ReadPlace(const json& document, std::string path, DataPlace& place) {
  JsonFields fields(document, std::move(path), Missing::kKeepsDefault);
  std::string kind(StoreName(place.kind)), credential(CredentialName(place.credential));
  fields.Read("kind", kind);
  fields.Read("account", place.account);
  fields.Read("container", place.container);
  fields.Read("endpoint", place.endpoint);
  fields.Read("region", place.region);
  fields.Read("path", place.path);
  fields.Read("root", place.root);
  fields.Read("pattern", place.is_pattern);
  fields.Read("classes", place.has_classes);
  fields.Read("credential", credential);
  fields.Read("secret", place.secret);
  fields.Read("datastore", place.datastore);
  const auto known_kind = StoreFromName(kind);
  const auto known_credential = CredentialFromName(credential);
  if (!known_kind) fields.Fail(fields.PathOf("kind") + " is unknown");
  if (!known_credential) fields.Fail(fields.PathOf("credential") + " is unknown");
  if (known_kind) place.kind = *known_kind;
  if (known_credential) place.credential = *known_credential;
  return fields.Finish();
}

}  // namespace tutti::spec
