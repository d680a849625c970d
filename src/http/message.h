// Defines Request and Response, which a server's handler gets and returns. They are plain values.
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
  std::string target;                             // as it was sent: "/a%20b?x=1"
  std::string path;                               // decoded, starts with "/", has no ".." segment
  std::multimap<std::string, std::string> query;  // decoded; those of one key in their order
  std::map<std::string, std::string> headers;     // names in lower case
  std::string peer;                               // "127.0.0.1:40312", "[::1]:40312"
  std::string local;                              // this end of the connection: "127.0.0.1:6280"

  // Returns the value of a header (name in lower case), or "".
  absl::string_view Header(const std::string& name) const;
  // Returns the last value of a query key, or "".
  absl::string_view Query(const std::string& key) const;
  // Returns what follows "Bearer " in the Authorization header, or "".
  absl::string_view BearerToken() const;
};

// Piece is the next part of a body that is sent piece by piece. With no bytes, and not the last, it
// says that there is nothing to send yet.
struct Piece {
  std::string bytes;
  bool last = false;
};

// Response is what a handler returns. The connection waits for `later` and `stream` without a
// thread: each is called at once, again whenever its waker (Connection::Waker) has been called, and
// again at the time to which it has set `again` (never, if it has not). They must not wait
// themselves. One thread at a time calls them. When the client has gone or the server stops, they
// are destroyed without another call.
struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  // Exactly one of these is the body; `stream` wins over `file` wins over `body`.
  std::string body;
  std::filesystem::path file;  // sent from disk, as long as it is when it is opened
  // An error breaks the body off, so that the client sees that it is incomplete. The function may
  // read files: it runs in a lane for files that go out (handler_pool.h).
  std::function<absl::StatusOr<Piece>(base::Deadline& again)> stream;
  // Returns the answer itself once there is one. If it is set, all other fields are ignored.
  std::function<std::optional<Response>(base::Deadline& again)> later;
};

// Returns a 200 (or `status`) with a JSON text.
Response JsonResponse(std::string json, int status = 200);

// Returns {"error": {"code": CODE, "message": MESSAGE}}, the form of every error of the service. A
// 503 has the header Retry-After: 1.
Response ErrorResponse(int status, absl::string_view code, absl::string_view message);

// Returns the answer for a status by its code: InvalidArgument 400, Unauthenticated 401,
// PermissionDenied 403, NotFound 404, FailedPrecondition and AlreadyExists 409, OutOfRange 413,
// ResourceExhausted 507, Unimplemented 501, Unavailable 503, DeadlineExceeded 504, others 500. For
// 410 call ErrorResponse(410, "gone", …).
Response ErrorResponse(const absl::Status& status);

}  // namespace tutti::http
