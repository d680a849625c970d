#include "platform/client/storage/store_credentials.h"

#include <utility>

#include "base/status.h"
#include "platform/client/connection/service_client.h"
#include "platform/storage/storage_json.h"

namespace tutti::client {
namespace {

using spec::CredentialKind;
using storage::Credentials;

// `prefix`: of Google's HMAC keys they have GDAL's names, so that no key of AWS goes to Google.
std::optional<Credentials> OfAws(const Variables& variables, const std::string& prefix) {
  Credentials key{CredentialKind::kAccessKey};
  key.access_key_id = variables((prefix + "_ACCESS_KEY_ID").c_str());
  key.secret_access_key = variables((prefix + "_SECRET_ACCESS_KEY").c_str());
  if (prefix == "AWS") key.session_token = variables("AWS_SESSION_TOKEN");
  if (key.access_key_id.empty() || key.secret_access_key.empty()) return std::nullopt;
  return key;
}

std::optional<Credentials> OfAzure(const Variables& variables) {
  Credentials found;
  found.sas = variables("AZURE_STORAGE_SAS_TOKEN");
  found.account_key = variables("AZURE_STORAGE_KEY");
  found.tenant = variables("AZURE_TENANT_ID");
  found.client = variables("AZURE_CLIENT_ID");
  found.client_secret = variables("AZURE_CLIENT_SECRET");
  found.authority = variables("AZURE_AUTHORITY_HOST");
  if (!found.sas.empty()) {
    found.kind = CredentialKind::kSas;
  } else if (!found.account_key.empty()) {
    found.kind = CredentialKind::kAccountKey;
  } else if (!found.tenant.empty() && !found.client.empty() && !found.client_secret.empty()) {
    found.kind = CredentialKind::kServicePrincipal;
  } else {
    return std::nullopt;
  }
  return found;
}

absl::StatusOr<FoundCredentials> OfService(const Connect& connect, const StorageAddress& address,
                                           bool write) {
  ServiceClient service(connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.GrantStorage(address.of_store, write));
  const absl::StatusOr<storage::Grant> grant = storage::GrantFromJson(text);
  if (!grant.ok()) return absl::InternalError("the service's answer is no grant");
  return FoundCredentials{grant->credentials, absl::FromUnixSeconds(grant->expires)};
}

}  // namespace

std::optional<Credentials> CredentialsOfVariables(spec::StoreKind kind,
                                                  const Variables& variables) {
  switch (kind) {
    case spec::StoreKind::kS3:
      return OfAws(variables, "AWS");
    case spec::StoreKind::kAzureBlob:
    case spec::StoreKind::kAzureDataLake:
    case spec::StoreKind::kAzureFile:
      return OfAzure(variables);
    case spec::StoreKind::kGcs:
      return OfAws(variables, "GS");
    case spec::StoreKind::kLocal:
    case spec::StoreKind::kNfs:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<FoundCredentials> FindCredentials(const Connect& connect,
                                                 const StorageAddress& address, bool write,
                                                 const Variables& variables) {
  if (!address.sas.empty()) {
    Credentials signature{CredentialKind::kSas};
    signature.sas = address.sas;
    return FoundCredentials{std::move(signature)};
  }
  if (!address.place.secret.empty()) {
    auto granted = OfService(connect, address, write);
    // One that is away may give some later, and the user's own may be of another account.
    const bool is_away =
        absl::IsUnavailable(granted.status()) || absl::IsDeadlineExceeded(granted.status());
    if (granted.ok() || is_away) return granted;
    if (auto own = CredentialsOfVariables(address.place.kind, variables)) {
      return FoundCredentials{*std::move(own)};
    }
    return granted.status();
  }
  auto own = CredentialsOfVariables(address.place.kind, variables);
  return FoundCredentials{own.has_value() ? *std::move(own) : Credentials{}};
}

}  // namespace tutti::client
