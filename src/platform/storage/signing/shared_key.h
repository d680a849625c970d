// Signs requests to Azure's storage by the account's key. Pure function; thread-safe.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::storage {

struct RequestToSign {
  std::string method;  // "GET"
  std::string path;    // of the address: percent-encoded, begins with "/"
  // The fields are not encoded. Names are in lower case, each once; headers are those that begin
  // with "x-ms-", since no others are sent.
  std::map<std::string, std::string> query, headers;
  int64_t body_bytes = 0;
};

// Returns the value of the header Authorization. InvalidArgument if the key is not base64.
absl::StatusOr<std::string> SharedKeyOf(const RequestToSign& request, absl::string_view account,
                                        absl::string_view account_key);

}  // namespace tutti::storage
