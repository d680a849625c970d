#include "platform/storage/arrow/arrow_options.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/storage/arrow/arrow_errors.h"
#include "spec/types/enum_names.h"

namespace tutti::storage {
namespace {

constexpr double kConnectSeconds = 10;
constexpr double kGcsRetrySeconds = 30;

struct Endpoint {
  std::string scheme, authority, path;  // authority: host and port; path without slashes around it
};

absl::StatusOr<Endpoint> EndpointOf(absl::string_view url) {
  Endpoint endpoint;
  absl::string_view rest = url;
  for (const char* scheme : {"http", "https"}) {
    if (absl::ConsumePrefix(&rest, absl::StrCat(scheme, "://"))) endpoint.scheme = scheme;
  }
  const size_t slash = rest.find('/');
  endpoint.authority = std::string(rest.substr(0, slash));
  if (slash != absl::string_view::npos) {
    endpoint.path = std::string(absl::StripSuffix(rest.substr(slash + 1), "/"));
  }
  const bool is_plain = rest.find_first_of("?#@ ") == absl::string_view::npos;
  if (is_plain && !endpoint.scheme.empty() && !endpoint.authority.empty()) return endpoint;
  return absl::InvalidArgumentError(
      "endpoint must be a URL of http or https, as https://store.example.org");
}

absl::Status WrongKind(const Credentials& credentials, absl::string_view store,
                       absl::string_view kinds) {
  return absl::InvalidArgumentError(absl::StrCat("credentials of kind ",
                                                 spec::CredentialName(credentials.kind),
                                                 " are not for ", store, ", which takes ", kinds));
}

void SetServers(arrow::fs::AzureOptions& options, absl::string_view blob, absl::string_view dfs,
                const std::string& scheme) {
  options.blob_storage_authority = std::string(blob);
  options.dfs_storage_authority = std::string(dfs);
  options.blob_storage_scheme = options.dfs_storage_scheme = scheme;
}

absl::Status SetAzureEndpoint(const spec::DataPlace& place, arrow::fs::AzureOptions& options) {
  if (place.endpoint.empty()) return absl::OkStatus();
  if (!absl::StrContains(place.endpoint, "://")) {  // "core.windows.net"
    SetServers(options, absl::StrCat(".blob.", place.endpoint),
               absl::StrCat(".dfs.", place.endpoint), "https");
    return absl::OkStatus();
  }
  TUTTI_ASSIGN_OR_RETURN(const Endpoint endpoint, EndpointOf(place.endpoint));
  absl::string_view suffix = endpoint.authority;
  if (endpoint.path.empty() && absl::ConsumePrefix(&suffix, place.account) &&
      (absl::StartsWith(suffix, ".blob.") || absl::StartsWith(suffix, ".dfs."))) {
    SetServers(options, absl::StrReplaceAll(suffix, {{".dfs.", ".blob."}}),
               absl::StrReplaceAll(suffix, {{".blob.", ".dfs."}}), endpoint.scheme);
    return absl::OkStatus();
  }
  if (!endpoint.path.empty() && endpoint.path != place.account) {
    return absl::InvalidArgumentError(
        "the path of an Azure endpoint must be the account's name, or be left out");
  }
  SetServers(options, endpoint.authority, endpoint.authority, endpoint.scheme);
  return absl::OkStatus();
}

arrow::Status SetAzureCredentials(const Credentials& credentials,
                                  arrow::fs::AzureOptions& options) {
  switch (credentials.kind) {
    case spec::CredentialKind::kAccountKey:
      return options.ConfigureAccountKeyCredential(credentials.account_key);
    case spec::CredentialKind::kSas:
      // Arrow puts it behind the address as it is.
      return options.ConfigureSASCredential(
          absl::StrCat("?", absl::StripPrefix(credentials.sas, "?")));
    case spec::CredentialKind::kServicePrincipal:
      return options.ConfigureClientSecretCredential(credentials.tenant, credentials.client,
                                                     credentials.client_secret);
    default:
      return options.ConfigureAnonymousCredential();
  }
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns whether no_proxy has the host: it is "*", or a list of names, each of which stands for
// all below it.
bool IsReachedDirectly(absl::string_view host) {
  std::string list = Variable("no_proxy");
  if (list.empty()) list = Variable("NO_PROXY");
  for (absl::string_view name : absl::StrSplit(list, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    absl::ConsumePrefix(&name, ".");
    absl::string_view rest = host;
    if (name == "*" || (absl::ConsumeSuffix(&rest, name) && (rest.empty() || rest.back() == '.'))) {
      return true;
    }
  }
  return false;
}

// The AWS SDK heeds no variable by itself.
absl::Status SetProxy(const std::string& scheme, absl::string_view authority,
                      arrow::fs::S3Options& options) {
  const std::string proxy = ProxyOfS3(scheme, authority);
  if (proxy.empty()) return absl::OkStatus();
  auto parsed = arrow::fs::S3ProxyOptions::FromUri(proxy);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(scheme, "_proxy is no address of a proxy, as http://proxy.example.org:3128"));
  }
  options.proxy_options = *std::move(parsed);
  return absl::OkStatus();
}

}  // namespace

std::string ProxyOfS3(const std::string& scheme, absl::string_view authority) {
  const absl::string_view host = authority.substr(0, authority.rfind(':'));
  std::string proxy = Variable(scheme == "http" ? "http_proxy" : "https_proxy");
  if (proxy.empty() && scheme == "https") proxy = Variable("HTTPS_PROXY");
  if (proxy.empty() || IsReachedDirectly(host)) return "";
  return absl::StrContains(proxy, "://") ? proxy : absl::StrCat("http://", proxy);
}

absl::StatusOr<arrow::fs::AzureOptions> AzureOptionsOf(const spec::DataPlace& place,
                                                       const Credentials& credentials) {
  if (credentials.kind == spec::CredentialKind::kAccessKey) {
    return WrongKind(credentials, "Azure", "account_key, sas, service_principal or none");
  }
  if (place.account.empty()) return absl::InvalidArgumentError("place has no account");
  arrow::fs::AzureOptions options;
  options.account_name = place.account;
  // Blocks are sent by the thread that writes them, which bounds the memory.
  options.background_writes = false;
  TUTTI_RETURN_IF_ERROR(SetAzureEndpoint(place, options));
  TUTTI_RETURN_IF_ERROR(StatusFrom(SetAzureCredentials(credentials, options)));
  return options;
}

absl::StatusOr<arrow::fs::S3Options> S3OptionsOf(const spec::DataPlace& place,
                                                 const Credentials& credentials) {
  arrow::fs::S3Options options;
  if (credentials.kind == spec::CredentialKind::kAccessKey) {
    options.ConfigureAccessKey(credentials.access_key_id, credentials.secret_access_key,
                               credentials.session_token);
  } else if (credentials.kind == spec::CredentialKind::kNone) {
    options.ConfigureAnonymousCredentials();
  } else {
    return WrongKind(credentials, "S3", "access_key or none");
  }
  options.connect_timeout = kConnectSeconds;
  options.background_writes = false;  // as of Azure
  // A file of one part goes in one request, and has its MD5 as ETag.
  options.allow_delayed_open = true;
  options.region = place.region;
  if (place.endpoint.empty()) {
    TUTTI_RETURN_IF_ERROR(
        SetProxy("https", absl::StrCat("s3.", place.region, ".amazonaws.com"), options));
    return options;
  }
  TUTTI_ASSIGN_OR_RETURN(const Endpoint endpoint, EndpointOf(place.endpoint));
  if (!endpoint.path.empty()) {
    return absl::InvalidArgumentError("the endpoint of S3 must have no path");
  }
  options.scheme = endpoint.scheme;
  options.endpoint_override = endpoint.authority;
  if (options.region.empty()) options.region = "us-east-1";
  TUTTI_RETURN_IF_ERROR(SetProxy(endpoint.scheme, endpoint.authority, options));
  return options;
}

// https://cloud.google.com/storage/docs/aws-simple-migration
spec::DataPlace GcsAsS3(spec::DataPlace place) {
  place.kind = spec::StoreKind::kS3;
  if (place.endpoint.empty()) place.endpoint = "https://storage.googleapis.com";
  if (place.region.empty()) place.region = "auto";
  return place;
}

absl::StatusOr<arrow::fs::GcsOptions> GcsOptionsOf(const spec::DataPlace& place,
                                                   const Credentials& credentials) {
  if (credentials.kind != spec::CredentialKind::kNone) {
    return WrongKind(credentials, "Google's storage", "access_key (an HMAC key) or none");
  }
  arrow::fs::GcsOptions options = arrow::fs::GcsOptions::Anonymous();
  options.retry_limit_seconds = kGcsRetrySeconds;
  if (place.endpoint.empty()) return options;
  TUTTI_ASSIGN_OR_RETURN(const Endpoint endpoint, EndpointOf(place.endpoint));
  options.scheme = endpoint.scheme;
  options.endpoint_override = endpoint.authority;
  return options;
}

}  // namespace tutti::storage
