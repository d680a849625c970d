#include "platform/stream/stream_request.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "spec/data/data_address.h"

namespace tutti::stream {
namespace {

using spec::CredentialKind;
using spec::DataPlace;
using spec::StoreKind;
using storage::Credentials;

std::string Value(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::string FirstOf(const Environment& environment, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::string value = Value(environment, name); !value.empty()) return value;
  }
  return "";
}

// `prefix`: "AWS"; "GS" of Google's storage, whose HMAC keys are of the same kind.
Credentials KeysOfS3(const Environment& environment, absl::string_view prefix = "AWS") {
  Credentials keys;
  keys.access_key_id = Value(environment, absl::StrCat(prefix, "_ACCESS_KEY_ID"));
  keys.secret_access_key = Value(environment, absl::StrCat(prefix, "_SECRET_ACCESS_KEY"));
  keys.session_token = Value(environment, absl::StrCat(prefix, "_SESSION_TOKEN"));
  if (!keys.access_key_id.empty()) keys.kind = CredentialKind::kAccessKey;
  return keys;
}

Credentials KeysOfAzure(const Environment& environment) {
  Credentials keys;
  keys.account_key = Value(environment, "AZURE_STORAGE_KEY");
  keys.sas = Value(environment, "AZURE_STORAGE_SAS_TOKEN");
  keys.tenant = Value(environment, "AZURE_TENANT_ID");
  keys.client = Value(environment, "AZURE_CLIENT_ID");
  keys.client_secret = Value(environment, "AZURE_CLIENT_SECRET");
  keys.authority = Value(environment, "AZURE_AUTHORITY_HOST");
  if (!keys.account_key.empty()) {
    keys.kind = CredentialKind::kAccountKey;
  } else if (!keys.sas.empty()) {
    keys.kind = CredentialKind::kSas;
  } else if (!keys.tenant.empty() && !keys.client.empty() && !keys.client_secret.empty()) {
    keys.kind = CredentialKind::kServicePrincipal;
  }
  return keys;
}

void TakeServer(const Environment& environment, DataPlace& place) {
  const bool is_s3 = place.kind == StoreKind::kS3;
  const std::string endpoint =
      is_s3 ? FirstOf(environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
            : Value(environment, "AZURE_STORAGE_SERVICE_ENDPOINT");
  if (!endpoint.empty()) place.endpoint = std::string(absl::StripSuffix(endpoint, "/"));
  if (is_s3) place.region = FirstOf(environment, {"AWS_REGION", "AWS_DEFAULT_REGION"});
}

absl::Status NoAddress(absl::string_view address) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", address.substr(0, address.find('?')),
                   "\" is no address of a store: write s3://BUCKET/PATH, gs://BUCKET/PATH, "
                   "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH or "
                   "https://ACCOUNT.blob.core.windows.net/CONTAINER/PATH, without a signature"));
}

}  // namespace

absl::StatusOr<StreamRequest> ParseStreamRequest(const std::vector<std::string>& arguments) {
  StreamRequest request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!absl::StartsWith(word, "--")) {
      request.address = word;
      continue;
    }
    if (++i == arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat(word, " has no value"));
    }
    uint64_t bytes = 0;
    if (word == "--socket") {
      request.socket = arguments[i];
    } else if (word == "--cache") {
      request.cache = arguments[i];
    } else if (word == "--most-bytes" && absl::SimpleAtoi(arguments[i], &bytes) && bytes > 0) {
      request.most_bytes = bytes;
    } else if (word == "--list") {
      request.list = arguments[i];
    } else if (word == "--node") {
      request.node = arguments[i];
    } else if (word == "--nodes" && absl::SimpleAtoi(arguments[i], &bytes) && bytes > 0) {
      request.nodes = bytes;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(word, " ", arguments[i], " is not known"));
    }
  }
  const bool is_whole =
      !request.address.empty() && request.socket.is_absolute() && request.cache.is_absolute();
  if (is_whole) return request;
  return absl::InvalidArgumentError(
      "usage: tutti-storage stream ADDRESS --socket FILE --cache FOLDER [--most-bytes N] "
      "[--node NAME --nodes N] [--list FILE], with absolute paths");
}

absl::StatusOr<storage::StorageRequest> RequestOfAddress(absl::string_view address,
                                                         const Environment& environment) {
  storage::StorageRequest request;
  request.operation = storage::Operation::kList;
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "file://") && absl::StartsWith(path, "/")) {
    request.place.path = std::string(path.size() > 1 ? absl::StripSuffix(path, "/") : path);
    return request;
  }
  if (absl::StartsWith(address, "azureml:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address,
                     "\" is a datastore, whose credentials the service alone has: name it as an "
                     "input of a job with mode: direct, or write the store's own address"));
  }
  TUTTI_ASSIGN_OR_RETURN(auto place, spec::PlaceOf(address, {}));
  if (!place.has_value()) return NoAddress(address);
  request.place = *std::move(place);
  if (request.place.kind == StoreKind::kGcs) {
    request.credentials = KeysOfS3(environment, "GS");
  } else {
    TakeServer(environment, request.place);
    request.credentials =
        request.place.kind == StoreKind::kS3 ? KeysOfS3(environment) : KeysOfAzure(environment);
  }
  request.place.credential = request.credentials.kind;
  return request;
}

}  // namespace tutti::stream
