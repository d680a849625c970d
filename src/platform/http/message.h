// What a server's handler gets and gives back. Plain values.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::http {

struct Request {
  std::string method;                          // "GET"
  std::string path;                            // decoded, starts with "/", has no ".." segment
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string peer;                            // "127.0.0.1:40312"

  // The value of a header (name in lower case) or query key, or "".
  absl::string_view Header(const std::string& name) const;
  absl::string_view Query(const std::string& key) const;
  // What follows "Bearer " in the Authorization header, or "".
  absl::string_view BearerToken() const;
};

// The far end of a streamed answer. Used by one thread at a time.
class Writer {
 public:
  virtual ~Writer() = default;
  // Sends one chunk now. Blocks while the client reads too slowly; Cancelled once the client has
  // gone, the server stops, or the client has read nothing for ServerOptions::stall_timeout.
  virtual absl::Status Write(absl::string_view bytes) = 0;
  // True once the client has gone or the server is stopping. A handler that waits for something
  // looks here at least once a second.
  virtual bool Closed() = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  // Exactly one of these three is the body; `stream` wins over `file` wins over `body`.
  std::string body;
  std::filesystem::path file;  // sent from disk, as long as it is when it is opened
  // Called after the header has gone, with the body's far end; may take hours. An error that it
  // returns breaks the chunked body off, so that the client sees that it is incomplete.
  std::function<absl::Status(Writer&)> stream;
};

// A 200 (or `status`) with a JSON text.
Response JsonResponse(std::string json, int status = 200);

// {"error": {"code": CODE, "message": MESSAGE}}, the form of every error of the service.
Response ErrorResponse(int status, absl::string_view code, absl::string_view message);

// By code: InvalidArgument 400, Unauthenticated 401, PermissionDenied 403, NotFound 404,
// FailedPrecondition and AlreadyExists 409, OutOfRange 413, ResourceExhausted 507, Unimplemented
// 501, Unavailable 503, DeadlineExceeded 504, others 500. For "gone" say ErrorResponse(410, "gone",
// …).
Response ErrorResponse(const absl::Status& status);

}  // namespace tutti::http
