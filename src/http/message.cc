#include "http/message.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"

namespace tutti::http {
namespace {

struct ErrorKind {
  int status;
  absl::string_view code;
};

ErrorKind KindOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return {400, "invalid_argument"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "unauthenticated"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "permission_denied"};
    case absl::StatusCode::kNotFound:
      return {404, "not_found"};
    case absl::StatusCode::kFailedPrecondition:
      return {409, "failed_precondition"};
    case absl::StatusCode::kAlreadyExists:
      return {409, "already_exists"};
    case absl::StatusCode::kOutOfRange:
      return {413, "too_large"};
    case absl::StatusCode::kUnimplemented:
      return {501, "unimplemented"};
    case absl::StatusCode::kUnavailable:
      return {503, "unavailable"};
    case absl::StatusCode::kDeadlineExceeded:
      return {504, "deadline_exceeded"};
    case absl::StatusCode::kResourceExhausted:
      return {507, "insufficient_storage"};
    default:
      return {500, "internal"};
  }
}

}  // namespace

absl::string_view Request::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? absl::string_view() : absl::string_view(found->second);
}

absl::string_view Request::Query(const std::string& key) const {
  const auto [first, end] = query.equal_range(key);
  return first == end ? absl::string_view() : absl::string_view(std::prev(end)->second);
}

absl::string_view Request::BearerToken() const {
  const absl::string_view value = Header("authorization");
  return absl::StartsWithIgnoreCase(value, "Bearer ") ? value.substr(7) : absl::string_view();
}

Response JsonResponse(std::string json, int status) {
  Response response;
  response.status = status;
  response.body = std::move(json);
  return response;
}

Response ErrorResponse(int status, absl::string_view code, absl::string_view message) {
  const nlohmann::json error = {
      {"error", {{"code", std::string(code)}, {"message", std::string(message)}}}};
  // Messages may quote bytes of the request, which need not be UTF-8.
  Response response = JsonResponse(
      error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", status);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response ErrorResponse(const absl::Status& status) {
  const ErrorKind kind = KindOf(status.code());
  return ErrorResponse(kind.status, kind.code, status.message());
}

}  // namespace tutti::http
