#include "platform/storage/arrow/arrow_errors.h"

#include <arrow/util/io_util.h>

#include <array>
#include <cerrno>
#include <regex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::storage {
namespace {

struct KnownError {
  const char* name;  // as the store or its library has it
  absl::StatusCode code;
  const char* phrase;
};

constexpr absl::StatusCode kCredentials = absl::StatusCode::kPermissionDenied;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kNetwork = absl::StatusCode::kUnavailable;
constexpr absl::StatusCode kChanged = absl::StatusCode::kAborted;
constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;

constexpr char kNotTaken[] = "the store does not take the credentials: check them";
constexpr char kMayNot[] =
    "the store refuses: the credentials are not known to it, or may not do this";
constexpr char kExpired[] = "the credentials have expired: make new ones";
constexpr char kClock[] =
    "the store does not take the time of the request: set this machine's clock (chronyc tracking, "
    "timedatectl)";
constexpr char kNoContainer[] = "there is no such container or bucket";
constexpr char kNothing[] = "nothing is at this path";
constexpr char kBusy[] = "the store is too busy or has failed";
constexpr char kNewer[] = "it has changed at the store while it was read";

constexpr std::array kKnownErrors = {
    // Azure
    KnownError{"AuthenticationFailed", kCredentials, kNotTaken},
    KnownError{"AuthorizationFailure", kCredentials, kNotTaken},
    KnownError{"InvalidAuthenticationInfo", kCredentials, kNotTaken},
    KnownError{"NoAuthenticationInformation", kCredentials, kNotTaken},
    KnownError{"AuthorizationPermissionMismatch", kCredentials, kMayNot},
    KnownError{"AuthorizationResourceTypeMismatch", kCredentials, kMayNot},
    KnownError{"AuthorizationServiceMismatch", kCredentials, kMayNot},
    KnownError{"AuthorizationSourceIPMismatch", kCredentials, kMayNot},
    KnownError{"InsufficientAccountPermissions", kCredentials, kMayNot},
    KnownError{"KeyBasedAuthenticationNotPermitted", kCredentials,
               "the account takes no account key: use a service principal"},
    KnownError{"PublicAccessNotPermitted", kCredentials,
               "the account is not public: name a datastore with credentials"},
    KnownError{"ContainerNotFound", kNotFound, kNoContainer},
    KnownError{"FilesystemNotFound", kNotFound, kNoContainer},
    KnownError{"BlobNotFound", kNotFound, kNothing},
    KnownError{"PathNotFound", kNotFound, kNothing},
    KnownError{"ResourceNotFound", kNotFound, kNothing},
    KnownError{"ServerBusy", kNetwork, kBusy},
    KnownError{"InternalError", kNetwork, kBusy},
    KnownError{"OperationTimedOut", kNetwork, kBusy},
    KnownError{"ConditionNotMet", kChanged, kNewer},
    KnownError{"InvalidRange", kChanged, kNewer},
    KnownError{"BlobArchived", kRefused, "it is in the archive tier: rehydrate it first"},
    // S3
    KnownError{"INVALID_ACCESS_KEY_ID", kCredentials, "the store does not know the access key"},
    KnownError{"INVALID_CLIENT_TOKEN_ID", kCredentials, "the store does not know the access key"},
    KnownError{"SIGNATURE_DOES_NOT_MATCH", kCredentials,
               "the secret access key is not that of the access key"},
    KnownError{"InvalidToken", kCredentials, "the session token is not valid"},
    KnownError{"ExpiredToken", kCredentials, kExpired},
    KnownError{"ACCESS_DENIED", kCredentials, kMayNot},
    KnownError{"REQUEST_TIME_TOO_SKEWED", kCredentials, kClock},
    KnownError{"REQUEST_EXPIRED", kCredentials, kClock},
    KnownError{"NO_SUCH_BUCKET", kNotFound, kNoContainer},
    KnownError{"NO_SUCH_KEY", kNotFound, kNothing},
    KnownError{"RESOURCE_NOT_FOUND", kNotFound, kNothing},
    KnownError{"NETWORK_CONNECTION", kNetwork, "the store cannot be reached"},
    KnownError{"SLOW_DOWN", kNetwork, kBusy},
    KnownError{"THROTTLING", kNetwork, kBusy},
    KnownError{"SERVICE_UNAVAILABLE", kNetwork, kBusy},
    KnownError{"INTERNAL_FAILURE", kNetwork, kBusy},
    KnownError{"REQUEST_TIMEOUT", kNetwork, kBusy},
    KnownError{"INVALID_OBJECT_STATE", kRefused, "it is in an archive: restore it first"},
    // Google's storage
    KnownError{"UNAUTHENTICATED", kCredentials, kNotTaken},
    KnownError{"PERMISSION_DENIED", kCredentials, kMayNot},
    KnownError{"NOT_FOUND", kNotFound, kNothing},
    KnownError{"UNAVAILABLE", kNetwork, kBusy},
};

absl::Status Made(absl::StatusCode code, absl::string_view phrase, absl::string_view name) {
  return {code, name.empty() ? std::string(phrase) : absl::StrCat(phrase, " (", name, ")")};
}

// The store's own name of the error: "Azure Error: [BlobNotFound] 404", "AWS Error NO_SUCH_KEY
// during", "google::cloud::Status(NOT_FOUND: …".
std::string NameIn(const std::string& text) {
  static const std::regex name(
      R"(Azure Error: \[(\w+)\]|AWS Error (?!UNKNOWN)(\w+)|Unable to parse ExceptionName: (\w+)|google::cloud::Status\((\w+):)");
  std::smatch match;
  if (!std::regex_search(text, match, name)) return "";
  // What AWS's library does not know it names by the store's name.
  static const std::regex unparsed(R"(Unable to parse ExceptionName: (\w+))");
  std::smatch better;
  if (std::regex_search(text, better, unparsed)) return better[1];
  for (size_t i = 1; i < match.size(); ++i) {
    if (match[i].matched) return match[i];
  }
  return "";
}

int HttpStatusIn(const std::string& text) {
  static const std::regex status(R"(Azure Error: \[\w*\] (\d{3})\b|HTTP status (\d{3})\b)");
  std::smatch match;
  int value = 0;
  if (std::regex_search(text, match, status)) {
    const bool parsed = absl::SimpleAtoi(match[match[1].matched ? 1 : 2].str(), &value);
    return parsed ? value : 0;
  }
  return 0;
}

// A bucket is in one region, and answers requests that were signed for another by its name.
std::string RegionIn(const std::string& text) {
  static const std::regex region(R"(bucket is located in '([\w-]+)')");
  std::smatch match;
  return std::regex_search(text, match, region) ? match[1].str() : "";
}

absl::Status ByHttpStatus(int status, absl::string_view name) {
  if (status == 401 || status == 403) return Made(kCredentials, kMayNot, name);
  if (status == 404) return Made(kNotFound, kNothing, name);
  if (status == 412 || status == 416) return Made(kChanged, kNewer, name);
  if (status == 408 || status == 429 || status >= 500) return Made(kNetwork, kBusy, name);
  return Made(kRefused, absl::StrCat("the store refuses with status ", status), name);
}

bool IsOfNetwork(const std::string& text) {
  for (const char* sign : {"Fail to get a new connection", "Could not resolve host",
                           "Could not connect", "curlCode:", "Error while sending request",
                           "Error while polling", "Connection reset", "connection was closed",
                           "Connection was closed", "TLS", "certificate", "Timeout", "timed out"}) {
    if (absl::StrContains(text, sign)) return true;
  }
  return false;
}

absl::Status ByWords(const std::string& text) {
  if (absl::StrContains(text, "Base64")) {
    return Made(kCredentials, "the account key is not base64, as account keys are", "");
  }
  // Before the network, for these are about requests for a token.
  if (absl::StrContains(text, "GetToken") || absl::StrContains(text, "ClientSecretCredential")) {
    return Made(kCredentials,
                "the service principal gets no token: check tenant, client and client_secret", "");
  }
  if (absl::StrContains(text, "certificate")) {
    return Made(kNetwork, "the store's certificate is not signed by an authority known here", "");
  }
  if (absl::StrContains(text, "Could not resolve host")) {
    return Made(kNetwork, "the store's host name is not known here", "");
  }
  if (IsOfNetwork(text)) return Made(kNetwork, "the store cannot be reached", "");
  return absl::UnknownError("the store has failed in a way that is not known");
}

}  // namespace

absl::Status StatusFrom(const arrow::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = status.ToString();
  const int error_number = arrow::internal::ErrnoFromStatus(status);
  if (error_number == ENOENT) return Made(kNotFound, kNothing, "");
  if (error_number != 0) return absl::ErrnoToStatus(error_number, "the file system refuses");
  const std::string name = NameIn(text);
  if (const std::string region = RegionIn(text); !region.empty()) {
    return Made(kRefused, absl::StrCat("the bucket is in another region: set region to ", region),
                name);
  }
  for (const KnownError& known : kKnownErrors) {
    if (name == known.name) return Made(known.code, known.phrase, name);
  }
  if (const int http = HttpStatusIn(text); http != 0) return ByHttpStatus(http, name);
  if (!name.empty()) return Made(kRefused, "the store refuses", name);
  return ByWords(text);
}

}  // namespace tutti::storage
