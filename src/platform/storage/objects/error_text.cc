#include "platform/storage/objects/error_text.h"

#include <array>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "platform/storage/storage_fault.h"

namespace tutti::storage {
namespace {

struct KnownError {
  const char* name;  // as the store or its library has it
  absl::StatusCode code;
  const char* phrase;
  bool may_know = false;  // the credentials may be known to the store, and may not do this
};

constexpr size_t kLongestText = 64 << 10;  // of what a library says; some have the answer's body
constexpr size_t kLongestErrorName = 100;

constexpr absl::StatusCode kCredentials = absl::StatusCode::kPermissionDenied;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kNetwork = absl::StatusCode::kUnavailable;
constexpr absl::StatusCode kChanged = absl::StatusCode::kAborted;
constexpr absl::StatusCode kForGood = absl::StatusCode::kInvalidArgument;
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
constexpr char kNoName[] = "the store takes no object of this name";
constexpr char kNewer[] = "it has changed at the store while it was read";

constexpr std::array kKnownErrors = {
    // Azure
    KnownError{"AuthenticationFailed", kCredentials, kNotTaken},
    KnownError{"AuthorizationFailure", kCredentials, kNotTaken, true},
    KnownError{"InvalidAuthenticationInfo", kCredentials, kNotTaken},
    KnownError{"NoAuthenticationInformation", kCredentials, kNotTaken},
    KnownError{"AuthorizationPermissionMismatch", kCredentials, kMayNot, true},
    KnownError{"AuthorizationResourceTypeMismatch", kCredentials, kMayNot, true},
    KnownError{"AuthorizationServiceMismatch", kCredentials, kMayNot, true},
    KnownError{"AuthorizationSourceIPMismatch", kCredentials, kMayNot, true},
    KnownError{"InsufficientAccountPermissions", kCredentials, kMayNot, true},
    KnownError{"KeyBasedAuthenticationNotPermitted", kCredentials,
               "the account takes no account key: use a service principal"},
    KnownError{"PublicAccessNotPermitted", kCredentials,
               "the account is not public: name a datastore with credentials"},
    KnownError{"ContainerNotFound", kNotFound, kNoContainer},
    KnownError{"FilesystemNotFound", kNotFound, kNoContainer},
    KnownError{"ShareNotFound", kNotFound, "there is no such share"},
    KnownError{"BlobNotFound", kNotFound, kNothing},
    KnownError{"ParentNotFound", kNotFound, kNothing},
    KnownError{"PathNotFound", kNotFound, kNothing},
    KnownError{"ResourceNotFound", kNotFound, kNothing},
    KnownError{"ServerBusy", kNetwork, kBusy},
    KnownError{"InternalError", kNetwork, kBusy},
    KnownError{"OperationTimedOut", kNetwork, kBusy},
    KnownError{"ConditionNotMet", kChanged, kNewer},
    KnownError{"InvalidRange", kChanged, kNewer},
    KnownError{"SharingViolation", kNetwork, "another program has the file open"},
    KnownError{"FileLockConflict", kNetwork, "another program has the file open"},
    KnownError{"ResourceTypeMismatch", kRefused,
               "a folder has that name, or a file that of a folder"},
    KnownError{"InvalidResourceName", kForGood, kNoName},
    KnownError{"InvalidUri", kForGood, kNoName},
    KnownError{"BlobArchived", kRefused, "it is in the archive tier: rehydrate it first"},
    // S3
    KnownError{"INVALID_ACCESS_KEY_ID", kCredentials, "the store does not know the access key"},
    KnownError{"INVALID_CLIENT_TOKEN_ID", kCredentials, "the store does not know the access key"},
    KnownError{"SIGNATURE_DOES_NOT_MATCH", kCredentials,
               "the secret access key is not that of the access key"},
    KnownError{"InvalidToken", kCredentials, "the session token is not valid"},
    KnownError{"ExpiredToken", kCredentials, kExpired},
    KnownError{"ACCESS_DENIED", kCredentials, kMayNot, true},
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
    KnownError{"KeyTooLongError", kForGood, kNoName},
    KnownError{"XMinioInvalidObjectName", kForGood, kNoName},
    KnownError{"INVALID_OBJECT_STATE", kRefused, "it is in an archive: restore it first"},
    // Google's storage
    KnownError{"UNAUTHENTICATED", kCredentials, kNotTaken},
    KnownError{"PERMISSION_DENIED", kCredentials, kMayNot, true},
    KnownError{"NOT_FOUND", kNotFound, kNothing},
    KnownError{"UNAVAILABLE", kNetwork, kBusy},
};

absl::Status Made(absl::StatusCode code, absl::string_view phrase, absl::string_view name) {
  return {code, name.empty() ? std::string(phrase) : absl::StrCat(phrase, " (", name, ")")};
}

bool IsOfWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool IsOfRegion(char c) { return IsOfWord(c) || c == '-'; }

// Returns what stands in the text between `before` and `after`, of characters that fit alone, at
// the first place where it does; "" if there is none.
absl::string_view Between(absl::string_view text, absl::string_view before, absl::string_view after,
                          bool (*fits)(char)) {
  for (size_t at = text.find(before); at != absl::string_view::npos; at = text.find(before)) {
    text.remove_prefix(at + before.size());
    size_t end = 0;
    while (end < text.size() && fits(text[end])) ++end;
    if (end > 0 && end <= kLongestErrorName && absl::StartsWith(text.substr(end), after)) {
      return text.substr(0, end);
    }
  }
  return "";
}

// Returns the store's own name of the error. What AWS's library does not know it names by the
// store's name.
absl::string_view NameIn(absl::string_view text) {
  const absl::string_view aws = Between(text, "AWS Error ", "", IsOfWord);
  for (const absl::string_view name :
       {Between(text, "Unable to parse ExceptionName: ", "", IsOfWord),
        Between(text, "Azure Error: [", "]", IsOfWord), absl::StartsWith(aws, "UNKNOWN") ? "" : aws,
        Between(text, "google::cloud::Status(", ":", IsOfWord)}) {
    if (!name.empty()) return name;
  }
  return "";
}

// Returns the three digits that the text begins with; 0 if it begins otherwise.
int StatusAt(absl::string_view text) {
  int value = 0;
  const bool ends = text.size() == 3 || (text.size() > 3 && !IsOfWord(text[3]));
  return ends && absl::SimpleAtoi(text.substr(0, 3), &value) && value >= 100 ? value : 0;
}

// "Azure Error: [NAME] 404", "HTTP status 404".
int HttpStatusIn(absl::string_view text) {
  for (const absl::string_view before : {"Azure Error: [", "HTTP status "}) {
    const size_t at = text.find(before);
    if (at == absl::string_view::npos) continue;
    absl::string_view rest = text.substr(at + before.size());
    if (before[0] == 'A') {
      const size_t end = rest.substr(0, kLongestErrorName).find("] ");
      rest = end == absl::string_view::npos ? "" : rest.substr(end + 2);
    }
    if (const int status = StatusAt(rest); status != 0) return status;
  }
  return 0;
}

// A bucket is in one region, and answers requests that were signed for another by its name.
absl::string_view RegionIn(absl::string_view text) {
  return Between(text, "bucket is located in '", "'", IsOfRegion);
}

absl::Status ByHttpStatus(int status, absl::string_view name) {
  if (status == 401 || status == 403) return Made(kCredentials, kMayNot, name);
  if (status == 404) return Made(kNotFound, kNothing, name);
  if (status == 412 || status == 416) return Made(kChanged, kNewer, name);
  if (status == 408 || status == 429 || status >= 500) return Made(kNetwork, kBusy, name);
  return Made(kRefused, absl::StrCat("the store refuses with status ", status), name);
}

bool IsOfNetwork(absl::string_view text) {
  for (const char* words :
       {"Fail to get a new connection", "Could not resolve host", "Could not connect",
        "curlCode:", "CURLE code:", "Error while sending request", "Error while polling",
        "Error while reading from network socket", "Error polling from socket", "Connection reset",
        "connection was closed", "Connection was closed", "Broken pipe", "Failed sending data",
        "TLS", "certificate", "Timeout", "timed out"}) {
    if (absl::StrContains(text, words)) return true;
  }
  return false;
}

absl::Status ByWords(absl::string_view text) {
  if (absl::StrContains(text, "Base64")) {
    return WithSource(Made(kCredentials, "the account key is not base64, as account keys are", ""),
                      FaultSource::kLogin);
  }
  // These come before errors of the network, since they are about requests for a token.
  if (absl::StrContains(text, "GetToken") || absl::StrContains(text, "ClientSecretCredential")) {
    return WithSource(
        Made(kCredentials,
             "the service principal gets no token: check tenant, client and client_secret", ""),
        FaultSource::kLogin);
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

absl::Status StatusFromText(absl::string_view text) {
  text = text.substr(0, kLongestText);
  const absl::string_view name = NameIn(text);
  if (const absl::string_view region = RegionIn(text); !region.empty()) {
    return Made(kRefused, absl::StrCat("the bucket is in another region: set region to ", region),
                name);
  }
  for (const KnownError& known : kKnownErrors) {
    if (name != known.name) continue;
    const bool is_login = known.code == kCredentials && !known.may_know;
    return WithSource(Made(known.code, known.phrase, name),
                      is_login ? FaultSource::kLogin : FaultSource::kStore);
  }
  if (const int http = HttpStatusIn(text); http != 0) return ByHttpStatus(http, name);
  if (!name.empty()) return Made(kRefused, "the store refuses", name);
  return ByWords(text);
}

}  // namespace tutti::storage
