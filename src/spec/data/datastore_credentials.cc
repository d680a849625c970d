#include "spec/data/datastore_credentials.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/text/secure_url.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/enum_names.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kAuthority = "authority";  // the secret's field

struct CredentialField {
  const char* key;   // in the file
  const char* name;  // in the secret
  bool optional = false;
};

// A kind of credentials, its keys, and which stores know it.
struct CredentialScheme {
  CredentialKind kind;
  std::vector<StoreKind> stores;
  std::vector<CredentialField> fields;
};

const std::vector<CredentialScheme>& Schemes() {
  using enum StoreKind;
  static const auto* const schemes = new std::vector<CredentialScheme>{
      {CredentialKind::kAccountKey,
       {kAzureBlob, kAzureDataLake, kAzureFile},
       {{"account_key", "account_key"}}},
      {CredentialKind::kSas, {kAzureBlob, kAzureDataLake, kAzureFile}, {{"sas_token", "sas"}}},
      {CredentialKind::kServicePrincipal,
       {kAzureBlob, kAzureDataLake},
       {{"tenant_id", "tenant"},
        {"client_id", "client"},
        {"client_secret", "client_secret"},
        {"authority_url", "authority", /*optional=*/true}}},
      {CredentialKind::kAccessKey,
       {kS3, kGcs},
       {{"access_key_id", "access_key_id"},
        {"secret_access_key", "secret_access_key"},
        {"session_token", "session_token", /*optional=*/true}}},
  };
  return *schemes;
}

bool Knows(const CredentialScheme& scheme, StoreKind store) {
  return std::find(scheme.stores.begin(), scheme.stores.end(), store) != scheme.stores.end();
}

std::string KeysOf(const CredentialScheme& scheme) {
  std::vector<absl::string_view> keys;
  for (const CredentialField& field : scheme.fields) {
    if (!field.optional) keys.push_back(field.key);
  }
  return absl::StrJoin(keys, ", ");
}

// "account_key, or sas_token, or tenant_id, client_id, client_secret".
std::string KeysFor(StoreKind store) {
  std::vector<std::string> keys;
  for (const CredentialScheme& scheme : Schemes()) {
    if (Knows(scheme, store)) keys.push_back(KeysOf(scheme));
  }
  return absl::StrJoin(keys, ", or ");
}

// On this machine too: who else is on it may listen where the secret would go.
bool IsAuthority(const std::string& url) {
  return absl::StartsWith(url, "https://") && base::IsSecureUrl(url);
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
    for (const CredentialScheme& scheme : Schemes()) {
      if (Knows(scheme, datastore_.place.kind)) kinds.push_back(CredentialName(scheme.kind));
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
    const CredentialScheme* taken = nullptr;
    nlohmann::json secret;
    for (const CredentialScheme& scheme : Schemes()) {
      nlohmann::json given = ValuesOf(scheme);
      if (given.empty()) continue;
      if (taken != nullptr) {
        Error(absl::StrCat(KeysOf(*taken), " and ", KeysOf(scheme),
                           " stand in it: take one of them"));
        return "";
      }
      taken = &scheme;
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

  nlohmann::json ValuesOf(const CredentialScheme& scheme) {
    nlohmann::json given = nlohmann::json::object();
    for (const CredentialField& field : scheme.fields) {
      std::string value;
      reader_.Text(field.key, value);
      if (value.empty()) continue;
      if (scheme.kind == CredentialKind::kSas) value = std::string(absl::StripPrefix(value, "?"));
      if (field.name == kAuthority) value = std::string(absl::StripSuffix(value, "/"));
      given[field.name] = value;
    }
    return given;
  }

  bool IsWhole(const CredentialScheme& scheme, const nlohmann::json& secret) {
    for (const CredentialField& field : scheme.fields) {
      if (field.optional || secret.contains(field.name)) continue;
      Error(absl::StrCat("the key \"", field.key, "\" is missing"));
      return false;
    }
    if (const auto authority = secret.find("authority");
        authority != secret.end() && !IsAuthority(authority->get<std::string>())) {
      Error(
          "authority_url must be a URL of https, as https://login.microsoftonline.com: the "
          "client_secret goes there");
      return false;
    }
    std::string bytes;
    const bool is_key = scheme.kind != CredentialKind::kAccountKey ||
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
