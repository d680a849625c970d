#include "platform/api/routing/router.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "platform/service/results/file_signature.h"

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

bool Router::Allowed(Access access, const http::Request& request,
                     const std::map<std::string, std::string>& parts) const {
  if (access == Access::kAnyone) return true;
  const std::string given(request.BearerToken());
  const auto is = [&given](const std::string& token) {
    return !token.empty() && base::EqualInConstantTime(given, token);
  };
  if (access == Access::kUser) {
    return is(tokens_.user) || (tokens_.is_page && tokens_.is_page(request));
  }
  if (access == Access::kToken) return is(tokens_.user);
  if (access == Access::kMonitor) return is(tokens_.user) || is(metrics_token_);
  if (access == Access::kTracking) return is(tokens_.user) || !JobRunOf(request).empty();
  if (access == Access::kSigned) {
    service::SignedFile file{.job = parts.at("job"), .path = parts.at("path")};
    return absl::SimpleAtoi(request.Query("expires"), &file.expires) &&
           absl::SimpleAtoi(request.Query("submission"), &file.submission) &&
           service::IsSigned(tokens_.launcher_key, file, request.Query("signature"));
  }
  const auto allocation = parts.find("allocation");
  const bool own = allocation != parts.end() &&
                   is(service::LauncherToken(tokens_.launcher_key, allocation->second));
  const bool former = allocation != parts.end()
                          ? tokens_.former_allocations.contains(allocation->second)
                          : !tokens_.former_allocations.empty();
  return own || (former && is(tokens_.former_launcher));
}

std::string Router::JobRunOf(const http::Request& request) const {
  if (!tokens_.may_track) return "";
  std::string run = service::RunOfToken(tokens_.launcher_key, request.BearerToken());
  return run.empty() || !tokens_.may_track(run) ? "" : run;
}

const Route* Router::Find(const http::Request& request, std::map<std::string, std::string>& parts,
                          std::vector<std::string>& methods) const {
  for (const Route& route : routes_) {
    if (!Matches(route.pattern, request.path, parts)) continue;
    methods.push_back(route.method);
    if (route.method == request.method) return &route;
  }
  return nullptr;
}

namespace {

http::Role RoleOf(Access access) {
  switch (access) {
    case Access::kUser:
    case Access::kToken:
    case Access::kTracking:
    case Access::kSigned:
      return http::Role::kUser;
    case Access::kMonitor:
      return http::Role::kMonitor;
    case Access::kLauncher:
      return http::Role::kNode;
    case Access::kAnyone:
      break;
  }
  return http::Role::kStranger;
}

}  // namespace

http::Admission Router::Admit(const http::Request& request) const {
  std::map<std::string, std::string> parts;
  std::vector<std::string> methods;
  const Route* const route = Find(request, parts, methods);
  if (route == nullptr && methods.empty()) {
    return {.refusal =
                http::ErrorResponse(404, "not_found", absl::StrCat("there is no ", request.path))};
  }
  if (route == nullptr) {
    http::Response response = http::ErrorResponse(
        405, "method_not_allowed", absl::StrCat(request.path, " does not know ", request.method));
    response.headers.emplace_back("Allow", absl::StrJoin(methods, ", "));
    return {.refusal = std::move(response)};
  }
  const auto kind = static_cast<int>(route - routes_.data());
  if (!Allowed(route->access, request, parts)) {
    return {.refusal = Refusal(route->access), .kind = kind};
  }
  const auto part = parts.find(route->group);
  return {.role = RoleOf(route->access),
          .pace = route->pace,
          .group = part == parts.end() ? route->group : part->second,
          .kind = kind};
}

http::Response Router::Refusal(Access access) {
  if (access == Access::kSigned) {
    return http::ErrorResponse(absl::UnauthenticatedError(
        "this address is not signed, or not as the service has signed it: tutti storage sign "
        "job:NAME/PATH makes one"));
  }
  http::Response response = http::ErrorResponse(absl::UnauthenticatedError(
      "this call needs the header Authorization: Bearer TOKEN with the service's token"));
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

http::Response Router::Answer(const http::Request& request, http::Connection& connection) const {
  std::map<std::string, std::string> parts;
  std::vector<std::string> methods;
  const Route* const route = Find(request, parts, methods);
  Call call{.request = request, .connection = connection, .parts = std::move(parts), .job_run = {}};
  if (route->access == Access::kTracking) {
    call.job_run = service::RunOfToken(tokens_.launcher_key, request.BearerToken());
  }
  http::Response response = route->answer(call);
  if (response.stream && IsOfAPage(route->access, request)) EndWithSession(request, response);
  return response;
}

bool Router::IsOfAPage(Access access, const http::Request& request) const {
  return access == Access::kUser && tokens_.is_page && request.BearerToken().empty();
}

// A page that is signed out, perhaps in another browser, reads no further.
void Router::EndWithSession(const http::Request& request, http::Response& response) const {
  response.stream = [this, request, next = std::move(response.stream)](
                        base::Deadline& again) -> absl::StatusOr<http::Piece> {
    if (tokens_.is_page(request)) return next(again);
    return absl::UnauthenticatedError("the page was signed out");
  };
}

}  // namespace tutti::api
