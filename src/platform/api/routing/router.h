// Router finds the function that answers a request, in one table of routes, which a test compares
// with openapi.json. Who may call a route is a column of that table, so that no route can forget to
// ask. Immutable once made; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "http/server/server.h"
#include "platform/service/attempt/launcher_token.h"

namespace tutti::api {

// kSigned: whoever has the file's own address, with a signature (service/results/file_signature.h).
// kToken: users with the token itself, and no page. kMonitor: users, and who watches the service.
// kTracking: users, and jobs by their runs' tokens.
enum class Access { kAnyone, kUser, kToken, kMonitor, kLauncher, kSigned, kTracking };

// A request whose path has been matched.
struct Call {
  const http::Request& request;
  http::Connection& connection;
  std::map<std::string, std::string> parts;  // "{job}" of the pattern
  std::string job_run;                       // of kTracking: that of the job which asks; or empty
  const std::string& operator[](const char* part) const { return parts.at(part); }
};

struct Route {
  std::string method;
  std::string pattern;  // "/v1/jobs/{job}/files/{path...}": the last part may be the whole rest
  Access access = Access::kUser;
  std::function<http::Response(const Call&)> answer;
  http::Pace pace = http::Pace::kQuick;
  // See http::Admission: the name of a part of the pattern, whose value it is, or another word.
  std::string group;
};

struct Tokens {
  std::string user;
  std::string launcher_key;  // of service::LauncherToken: each allocation's calls have their own
  // The token that all launchers of an earlier version share, and the allocations that it opens.
  std::string former_launcher;
  std::set<std::string> former_allocations;
  // Whether the token of a job's run opens anything now. Null: none does.
  std::function<bool(const std::string& run)> may_track;
  // Whether a request is that of a page whose user has signed in, which may what users may. Null:
  // no page may.
  std::function<bool(const http::Request& request)> is_page;
};

class Router {
 public:
  Router(std::vector<Route> routes, Tokens tokens)
      : routes_(std::move(routes)),
        tokens_(std::move(tokens)),
        metrics_token_(service::MetricsToken(tokens_.launcher_key)) {}

  // Judges a request by its header: 404 for an unknown path, 405 for a known one with another
  // method, 401 without the right token. Its kind is the route's place in routes().
  http::Admission Admit(const http::Request& request) const;
  // Answers a request that was admitted.
  http::Response Answer(const http::Request& request, http::Connection& connection) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  // Finds the request's route, null if there is none; `methods`: those that its path has.
  const Route* Find(const http::Request& request, std::map<std::string, std::string>& parts,
                    std::vector<std::string>& methods) const;
  bool Allowed(Access access, const http::Request& request,
               const std::map<std::string, std::string>& parts) const;
  // Returns the run of the job whose token the request has, if that opens anything now; else "".
  std::string JobRunOf(const http::Request& request) const;
  bool IsOfAPage(Access access, const http::Request& request) const;
  // Has the answer's stream break off once the request's session has ended.
  void EndWithSession(const http::Request& request, http::Response& response) const;
  // Returns the answer to who may not.
  static http::Response Refusal(Access access);

  const std::vector<Route> routes_;
  const Tokens tokens_;
  const std::string metrics_token_;
};

// Returns whether `path` has the pattern's form; its named parts go into `parts`.
bool Matches(absl::string_view pattern, absl::string_view path,
             std::map<std::string, std::string>& parts);

}  // namespace tutti::api
