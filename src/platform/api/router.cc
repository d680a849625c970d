#include "platform/api/router.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash.h"

namespace tutti::api {

bool Matches(absl::string_view pattern, absl::string_view path,
             std::map<std::string, std::string>& parts) {
  parts.clear();
  const std::vector<absl::string_view> wanted = absl::StrSplit(pattern, '/');
  const std::vector<absl::string_view> given = absl::StrSplit(path, '/');
  for (size_t i = 0; i < wanted.size(); ++i) {
    absl::string_view name = wanted[i];
    const bool named = absl::ConsumePrefix(&name, "{") && absl::ConsumeSuffix(&name, "}");
    if (named && absl::ConsumeSuffix(&name, "...")) {
      if (i >= given.size()) return false;
      parts[std::string(name)] = absl::StrJoin(given.begin() + i, given.end(), "/");
      return true;
    }
    if (i >= given.size() || (named ? given[i].empty() : given[i] != wanted[i])) return false;
    if (named) parts[std::string(name)] = std::string(given[i]);
  }
  return wanted.size() == given.size();
}

bool Router::Allowed(Access access, const http::Request& request) const {
  if (access == Access::kAnyone) return true;
  const std::string& token = access == Access::kUser ? tokens_.user : tokens_.launcher;
  return base::EqualInConstantTime(request.BearerToken(), token);
}

http::Response Router::Answer(const http::Request& request, http::Connection& connection) const {
  std::vector<std::string> methods;
  std::map<std::string, std::string> parts;
  for (const Route& route : routes_) {
    if (!Matches(route.pattern, request.path, parts)) continue;
    methods.push_back(route.method);
    if (route.method != request.method) continue;
    if (!Allowed(route.access, request)) {
      http::Response response = http::ErrorResponse(absl::UnauthenticatedError(
          "this call needs the header Authorization: Bearer TOKEN with the service's token"));
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
      return response;
    }
    if (route.access != Access::kAnyone) connection.Trust();
    return route.answer(Call{request, connection, std::move(parts)});
  }
  if (methods.empty()) {
    return http::ErrorResponse(404, "not_found", absl::StrCat("there is no ", request.path));
  }
  http::Response response = http::ErrorResponse(
      405, "method_not_allowed", absl::StrCat(request.path, " does not know ", request.method));
  response.headers.emplace_back("Allow", absl::StrJoin(methods, ", "));
  return response;
}

}  // namespace tutti::api
