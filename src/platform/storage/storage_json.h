// Writes and reads what goes between `tutti-storage` and those who run it: one request, and an
// answer of lines (docs/formats/storage-program.md). Pure functions.
#pragma once

#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Writes the request, with its credentials: for the program's standard input alone.
std::string ToJson(const StorageRequest& request);
// InvalidArgument names the field that is missing, unknown or of the wrong type, never its value.
absl::StatusOr<StorageRequest> StorageRequestFromJson(absl::string_view text);

// Grant is the access to a store that the service gives a user for a limited time.
struct Grant {
  spec::DataPlace place;
  Credentials credentials;
  int64_t expires = 0;  // seconds since 1970
};
// Writes it, with its credentials, and reads it back; as of StorageRequest.
std::string ToJson(const Grant& grant);
absl::StatusOr<Grant> GrantFromJson(absl::string_view text);

// StorageDone is the last line after success: StorageResult without its objects, which have lines
// of their own.
struct StorageDone {
  int64_t objects = 0, bytes = 0;
  std::string digest;
  bool is_file = false;
};

// StorageFailure is the last line after a failure. `path` is the object that it is about, if
// any.
struct StorageFailure {
  absl::Status status;
  std::string path;
};

using AnswerLine = std::variant<StoredObject, StorageProgress, StorageDone, StorageFailure>;

// Returns the line without its end. Bytes that are no UTF-8 are replaced.
std::string ToJson(const AnswerLine& line);
// InvalidArgument if the text is no such line.
absl::StatusOr<AnswerLine> AnswerLineFromJson(absl::string_view text);

// Returns how an answer names an error: "credentials" for PermissionDenied, "not_found" for
// NotFound, "network" for Unavailable, "disk_full" for ResourceExhausted, "changed" for Aborted,
// "damaged" for DataLoss, "usage" for InvalidArgument, "refused" for all others.
absl::string_view ErrorKind(const absl::Status& status);
// Returns the code of such a name; Unknown for "refused" and for others.
absl::StatusCode CodeOfErrorKind(absl::string_view kind);

}  // namespace tutti::storage
