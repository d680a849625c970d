// From a request to the function that answers it: one table of routes, which is also what a test
// holds against openapi.json. Who may call what is a column of that table, so that no route can
// forget to ask. Immutable once made; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/http/server.h"

namespace tutti::api {

enum class Access { kAnyone, kUser, kLauncher };

// A request whose path has been matched.
struct Call {
  const http::Request& request;
  http::Connection& connection;
  std::map<std::string, std::string> parts;  // "{job}" of the pattern
  const std::string& operator[](const char* part) const { return parts.at(part); }
};

struct Route {
  std::string method;
  std::string pattern;  // "/v1/jobs/{job}/files/{path...}": the last part may be the whole rest
  Access access = Access::kUser;
  std::function<http::Response(const Call&)> answer;
};

struct Tokens {
  std::string user, launcher;
};

class Router {
 public:
  Router(std::vector<Route> routes, Tokens tokens)
      : routes_(std::move(routes)), tokens_(std::move(tokens)) {}

  // 404 for an unknown path, 405 for a known one with another method, 401 without the right token.
  http::Response Answer(const http::Request& request, http::Connection& connection) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  bool Allowed(Access access, const http::Request& request) const;

  const std::vector<Route> routes_;
  const Tokens tokens_;
};

// Whether `path` has the pattern's form; its named parts go into `parts`.
bool Matches(absl::string_view pattern, absl::string_view path,
             std::map<std::string, std::string>& parts);

}  // namespace tutti::api
