#include "spec/data/datastore_credentials.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/enum_names.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

struct Field {
  const char* key;   // in the file
  const char* name;  // in the secret
  bool optional = false;
};

// One way to prove that one may, and which stores know it.
struct Way {
  CredentialKind kind;
  std::vector<StoreKind> stores;
  std::vector<Field> fields;
};

const std::vector<Way>& Ways() {
  using enum StoreKind;
  static const auto* const ways = new std::vector<Way>{
      {CredentialKind::kAccountKey,
       {kAzureBlob, kAzureDataLake, kAzureFile},
       {{"account_key", "account_key"}}},
      {CredentialKind::kSas, {kAzureBlob, kAzureDataLake, kAzureFile}, {{"sas_token", "sas"}}},
      {CredentialKind::kServicePrincipal,
       {kAzureBlob, kAzureDataLake},
       {{"tenant_id", "tenant"}, {"client_id", "client"}, {"client_secret", "client_secret"}}},
      {CredentialKind::kAccessKey,
       {kS3},
       {{"access_key_id", "access_key_id"},
        {"secret_access_key", "secret_access_key"},
        {"session_token", "session_token", /*optional=*/true}}},
  };
  return *ways;
}

bool Knows(const Way& way, StoreKind store) {
  return std::find(way.stores.begin(), way.stores.end(), store) != way.stores.end();
}

std::string KeysOf(const Way& way) {
  std::vector<absl::string_view> keys;
  for (const Field& field : way.fields) {
    if (!field.optional) keys.push_back(field.key);
  }
  return absl::StrJoin(keys, ", ");
}

// "account_key, or sas_token, or tenant_id, client_id, client_secret".
std::string KeysFor(StoreKind store) {
  std::vector<std::string> keys;
  for (const Way& way : Ways()) {
    if (Knows(way, store)) keys.push_back(KeysOf(way));
  }
  return absl::StrJoin(keys, ", or ");
}

class CredentialReader {
 public:
  CredentialReader(const YamlNode::Entry& entry, Datastore& datastore, Diagnostics& diagnostics)
      : entry_(entry),
        datastore_(datastore),
        diagnostics_(diagnostics),
        reader_(*entry.value, "credentials", diagnostics, {"datastore", "credentials."}) {}

  std::string Read() {
    if (KeysFor(datastore_.place.kind).empty()) {
      Error(absl::StrCat("a datastore of type ", datastore_.type, " is read without any"));
      return "";
    }
    if (FindEntry(*entry_.value, "secret") != nullptr) {
      ReadName();
      return "";
    }
    const std::string secret = ReadValues();
    reader_.Finish();
    return secret;
  }

 private:
  void Error(absl::string_view why) {
    diagnostics_.Error(entry_.line, absl::StrCat("credentials: ", why));
  }

  // A secret that is there, or will be: its name, and what it holds.
  void ReadName() {
    std::vector<absl::string_view> kinds;
    for (const Way& way : Ways()) {
      if (Knows(way, datastore_.place.kind)) kinds.push_back(CredentialName(way.kind));
    }
    std::string kind(kinds.front()), name;
    reader_.Choice("type", kinds, kind);
    const YamlNode::Entry* const entry = reader_.Text("secret", name);
    if (!IsSecretName(name)) {
      diagnostics_.Error(entry == nullptr ? entry_.line : entry->line,
                         "credentials.secret must name a secret: letters, digits, \"-\" and \"_\"");
    }
    reader_.Finish();
    datastore_.place.credential = *CredentialFromName(kind);
    datastore_.place.secret = name;
  }

  std::string ReadValues() {
    std::string type;
    reader_.Text("type", type);  // the keys themselves say it
    const Way* taken = nullptr;
    nlohmann::json secret;
    for (const Way& way : Ways()) {
      nlohmann::json given = ValuesOf(way);
      if (given.empty()) continue;
      if (taken != nullptr) {
        Error(absl::StrCat(KeysOf(*taken), " and ", KeysOf(way), " stand in it: take one of them"));
        return "";
      }
      taken = &way;
      secret = std::move(given);
    }
    if (taken == nullptr || !Knows(*taken, datastore_.place.kind)) {
      Error(absl::StrCat("a datastore of type ", datastore_.type, " takes ",
                         KeysFor(datastore_.place.kind)));
      return "";
    }
    datastore_.place.credential = taken->kind;
    datastore_.place.secret = SecretOfDatastore(datastore_.name);
    const bool is_whole = IsWhole(*taken, secret);
    secret["store"] = StoreOf(datastore_.place);
    return is_whole ? secret.dump(-1, ' ', /*ensure_ascii=*/true,
                                  nlohmann::json::error_handler_t::replace)
                    : "";
  }

  nlohmann::json ValuesOf(const Way& way) {
    nlohmann::json given = nlohmann::json::object();
    for (const Field& field : way.fields) {
      std::string value;
      reader_.Text(field.key, value);
      if (value.empty()) continue;
      given[field.name] =
          way.kind == CredentialKind::kSas ? std::string(absl::StripPrefix(value, "?")) : value;
    }
    return given;
  }

  bool IsWhole(const Way& way, const nlohmann::json& secret) {
    for (const Field& field : way.fields) {
      if (field.optional || secret.contains(field.name)) continue;
      Error(absl::StrCat("the key \"", field.key, "\" is missing"));
      return false;
    }
    std::string bytes;
    const bool is_key = way.kind != CredentialKind::kAccountKey ||
                        absl::Base64Unescape(secret["account_key"].get<std::string>(), &bytes);
    if (!is_key) Error("account_key is not base64, as an account's keys are: copy all of it");
    return is_key;
  }

  const YamlNode::Entry& entry_;
  Datastore& datastore_;
  Diagnostics& diagnostics_;
  MappingReader reader_;
};

}  // namespace

std::string ReadCredentials(const YamlNode::Entry& entry, Datastore& datastore,
                            Diagnostics& diagnostics) {
  if (entry.value->kind == YamlNode::Kind::kMapping) {
    return CredentialReader(entry, datastore, diagnostics).Read();
  }
  // Its text is not shown: it may be a credential.
  diagnostics.Error(entry.line, "credentials must be a mapping, as {account_key: …}");
  return "";
}

}  // namespace tutti::spec
