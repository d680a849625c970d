// Defines Request and Response: what a server's handler gets and gives back. Plain values.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"

namespace tutti::http {

struct Request {
  std::string method;                             // "GET"
  std::string path;                               // decoded, starts with "/", has no ".." segment
  std::multimap<std::string, std::string> query;  // decoded; those of one key in their order
  std::map<std::string, std::string> headers;     // names in lower case
  std::string peer;                               // "127.0.0.1:40312"

  // Returns the value of a header (name in lower case), or "".
  absl::string_view Header(const std::string& name) const;
  // Returns the last value of a query key, or "".
  absl::string_view Query(const std::string& key) const;
  // Returns what follows "Bearer " in the Authorization header, or "".
  absl::string_view BearerToken() const;
};

// What there is now of a body that comes piece by piece. Neither bytes nor the end: nothing yet.
struct Piece {
  std::string bytes;
  bool last = false;
};

// The connection waits for `later` and `stream` without a thread. Each is called at once, whenever
// its waker (Connection::Waker) was called, and when the time has come that it has set `again` to
// (which is far away if it does not). It does not wait itself. By one thread at a time. When the
// client has gone or the server stops, it is destroyed without another call.
struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  // Exactly one of these is the body; `stream` wins over `file` wins over `body`.
  std::string body;
  std::filesystem::path file;  // sent from disk, as long as it is when it is opened
  // An error breaks the body off, so that the client sees that it is incomplete. It may read files,
  // in a lane of what is sent.
  std::function<absl::StatusOr<Piece>(base::Deadline& again)> stream;
  // The answer itself, once there is one: then nothing else here counts.
  std::function<std::optional<Response>(base::Deadline& again)> later;
};

// Returns a 200 (or `status`) with a JSON text.
Response JsonResponse(std::string json, int status = 200);

// Returns {"error": {"code": CODE, "message": MESSAGE}}, the form of every error of the service.
// 503 says Retry-After: 1.
Response ErrorResponse(int status, absl::string_view code, absl::string_view message);

// Answers by the status's code: InvalidArgument 400, Unauthenticated 401, PermissionDenied 403,
// NotFound 404, FailedPrecondition and AlreadyExists 409, OutOfRange 413, ResourceExhausted 507,
// Unimplemented 501, Unavailable 503, DeadlineExceeded 504, others 500. For "gone" say
// ErrorResponse(410, "gone", …).
Response ErrorResponse(const absl::Status& status);

}  // namespace tutti::http
