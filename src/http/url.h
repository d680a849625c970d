// Decodes percent escapes, and parses request targets and base URLs (RFC 3986, the
// subset that HTTP/1.1 uses).
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::http {

// Undoes base::PercentEncode. Returns InvalidArgument for a broken escape or an escaped NUL.
absl::StatusOr<std::string> PercentDecode(absl::string_view text);

// Target is "/a/b?x=1&y=2" taken apart and decoded.
struct Target {
  std::string path;                               // starts with "/"
  std::multimap<std::string, std::string> query;  // those of one key in their order
};

// Returns InvalidArgument for a target that is not a path or whose path has a "." or ".." segment.
absl::StatusOr<Target> ParseTarget(absl::string_view target);

// Authority is the host and port of "http://127.0.0.1:6280/", "127.0.0.1:6280", "http://host" (port
// 80) or "https://host" (port 443).
struct Authority {
  std::string host;
  int port = 80;
  bool tls = false;
};
absl::StatusOr<Authority> ParseBaseUrl(absl::string_view url);

}  // namespace tutti::http
