// Reads what Azure Files answers who asks for the content of a folder. Pure function; thread-safe.
// https://learn.microsoft.com/rest/api/storageservices/list-directories-and-files
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

struct SharePage {
  std::vector<StoredObject> files;   // their paths are names in the folder
  std::vector<std::string> folders;  // names
  std::string next;                  // the marker to ask for more with; empty: that was all
};

// Unavailable if it is no such answer, as of a server on the way.
absl::StatusOr<SharePage> SharePageFrom(const std::string& xml);

// Returns seconds since 1970 of "Fri, 27 Nov 2026 01:00:00 GMT" or "2026-11-27T01:00:00.1234567Z";
// 0 of anything else, and of what is no time of a file.
double StoreTimeFrom(absl::string_view text);

}  // namespace tutti::storage
