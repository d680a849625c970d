// Parses numbers and flags in a request's query and path.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/message.h"

namespace tutti::api {

// Reads a number; InvalidArgument names what is not a whole number from `least` to `most`.
absl::StatusOr<int64_t> NumberFrom(absl::string_view text, absl::string_view name, int64_t least,
                                   int64_t most);
// Reads the same of a query key; `otherwise` if it is not there.
absl::StatusOr<int64_t> QueryNumber(const http::Request& request, const char* name,
                                    int64_t otherwise, int64_t least,
                                    int64_t most = std::numeric_limits<int64_t>::max());
// Reads any number of a query key that is finite; `otherwise` if it is not there.
absl::StatusOr<double> QueryFinite(const http::Request& request, const char* name,
                                   double otherwise);
// Reads "true" or "false".
absl::StatusOr<bool> QueryFlag(const http::Request& request, const char* name, bool otherwise);

}  // namespace tutti::api
