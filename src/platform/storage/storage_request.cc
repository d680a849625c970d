#include "platform/storage/storage_request.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "spec/types/enum_names.h"

namespace tutti::storage {
namespace {

constexpr std::array<std::pair<Operation, absl::string_view>, 8> kOperations = {{
    {Operation::kStat, "stat"},
    {Operation::kList, "list"},
    {Operation::kBrowse, "browse"},
    {Operation::kDigest, "digest"},
    {Operation::kFetch, "fetch"},
    {Operation::kPut, "put"},
    {Operation::kRemove, "remove"},
    {Operation::kProbe, "probe"},
}};

constexpr std::array<std::pair<PlaceType, absl::string_view>, 3> kPlaceTypes = {{
    {PlaceType::kFile, "file"},
    {PlaceType::kFolder, "folder"},
    {PlaceType::kAny, "any"},
}};

template <typename Table, typename Value>
absl::string_view NameOf(const Table& table, Value value) {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return "";
}

template <typename Table>
auto ValueOf(const Table& table, absl::string_view name)
    -> std::optional<typename Table::value_type::first_type> {
  for (const auto& [value, known] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// CredentialField is a field of a credential: its name in a secret's JSON, and whether it must be
// there.
struct CredentialField {
  const char* name;
  std::string Credentials::*value;
  bool needed = true;
};

std::vector<CredentialField> FieldsOf(spec::CredentialKind kind) {
  switch (kind) {
    case spec::CredentialKind::kNone:
      return {};
    case spec::CredentialKind::kAccountKey:
      return {{"account_key", &Credentials::account_key}};
    case spec::CredentialKind::kSas:
      return {{"sas", &Credentials::sas}};
    case spec::CredentialKind::kServicePrincipal:
      return {{"tenant", &Credentials::tenant},
              {"client", &Credentials::client},
              {"client_secret", &Credentials::client_secret},
              {"authority", &Credentials::authority, false}};
    case spec::CredentialKind::kAccessKey:
      return {{"access_key_id", &Credentials::access_key_id},
              {"secret_access_key", &Credentials::secret_access_key},
              {"session_token", &Credentials::session_token, false}};
  }
  return {};
}

absl::Status Unusable(spec::CredentialKind kind, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("the secret does not hold credentials of kind ",
                                                 spec::CredentialName(kind), ": ", why));
}

absl::StatusOr<Credentials> FromObject(spec::CredentialKind kind, const nlohmann::json& object) {
  Credentials credentials{kind};
  for (const CredentialField& field : FieldsOf(kind)) {
    const auto found = object.find(field.name);
    if (found == object.end()) {
      if (field.needed) return Unusable(kind, absl::StrCat("its JSON has no ", field.name));
      continue;
    }
    if (!found->is_string() || (field.needed && found->get_ref<const std::string&>().empty())) {
      return Unusable(kind, absl::StrCat(field.name, " must be a string that is not empty"));
    }
    credentials.*field.value = found->get<std::string>();
  }
  const auto store = object.find("store");
  if (store != object.end() && store->is_string()) credentials.store = store->get<std::string>();
  return credentials;
}

std::string ContainerName(const spec::DataPlace& place) {
  const auto of_account = [&](absl::string_view word) {
    return absl::StrCat(word, " \"", place.container, "\" of Azure account \"", place.account,
                        "\"");
  };
  switch (place.kind) {
    case spec::StoreKind::kLocal:
      return "";
    case spec::StoreKind::kAzureBlob:
      return of_account("container");
    case spec::StoreKind::kAzureDataLake:
      return of_account("file system");
    case spec::StoreKind::kAzureFile:
      return of_account("share");
    case spec::StoreKind::kS3:
      return absl::StrCat("bucket \"", place.container, "\"",
                          place.endpoint.empty() ? "" : absl::StrCat(" at ", place.endpoint));
    case spec::StoreKind::kGcs:
      return absl::StrCat("Google's bucket \"", place.container, "\"");
    case spec::StoreKind::kNfs:
      return absl::StrCat("\"/", place.container, "\" of file server ", place.endpoint);
  }
  return "";
}

}  // namespace

absl::string_view Name(Operation operation) { return NameOf(kOperations, operation); }
absl::string_view Name(PlaceType type) { return NameOf(kPlaceTypes, type); }

std::optional<Operation> OperationFromName(absl::string_view name) {
  return ValueOf(kOperations, name);
}
std::optional<PlaceType> PlaceTypeFromName(absl::string_view name) {
  return ValueOf(kPlaceTypes, name);
}

std::string Described(const spec::DataPlace& place) {
  const std::string container = ContainerName(place);
  if (container.empty()) return place.path;
  if (place.path.empty()) return container;
  return absl::StrCat(container, ", path \"", place.path, "\"");
}

absl::StatusOr<Credentials> CredentialsFrom(spec::CredentialKind kind,
                                            absl::string_view secret_value) {
  if (kind == spec::CredentialKind::kNone) return Credentials{};
  const absl::string_view text = absl::StripAsciiWhitespace(secret_value);
  if (absl::StartsWith(text, "{")) {
    const auto object = nlohmann::json::parse(text, nullptr, false);
    if (!object.is_object()) return Unusable(kind, "it begins with \"{\" and is no JSON");
    return FromObject(kind, object);
  }
  if (text.empty()) return Unusable(kind, "it is empty");
  Credentials credentials{kind};
  if (kind == spec::CredentialKind::kAccountKey) {
    credentials.account_key = std::string(text);
  } else if (kind == spec::CredentialKind::kSas) {
    credentials.sas = std::string(text);
  } else {
    return Unusable(kind, "it must be a JSON object");
  }
  return credentials;
}

}  // namespace tutti::storage
