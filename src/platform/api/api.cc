#include "platform/api/api.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/api/launcher_routes.h"
#include "platform/api/model_routes.h"
#include "platform/api/portal/page_listener.h"
#include "platform/api/portal/portal_routes.h"
#include "platform/api/rest.h"
#include "platform/api/routing/call_counters.h"
#include "platform/api/tracking_routes.h"
#include "spdlog/spdlog.h"

namespace tutti::api {
namespace {

void Append(std::vector<Route>& routes, std::vector<Route> more) {
  for (Route& route : more) routes.push_back(std::move(route));
}

// What pages may call. They are the first of all routes, in the same order, so that a call counts
// as the same one wherever it came in.
std::vector<Route> PageRoutes(service::Service* service, const Portal* portal,
                              const std::function<HttpUse()>& http) {
  std::vector<Route> routes = PortalRoutes(portal);
  Append(routes, UserRoutes(service, http));
  Append(routes, ModelRoutes(service));
  return routes;
}

std::vector<Route> AllRoutes(service::Service* service, const Portal* portal,
                             tracking::TrackingServer* tracking,
                             const std::function<HttpUse()>& http) {
  std::vector<Route> routes = PageRoutes(service, portal, http);
  Append(routes, LauncherRoutes(service));
  if (tracking != nullptr) Append(routes, TrackingRoutes(tracking));
  return routes;
}

class RunningServer final : public ApiServer {
 public:
  RunningServer(const ApiOptions& options, service::Service* service)
      : words_(::geteuid(), &clock_),
        sessions_(options.tokens.launcher_key, options.sessions_file, &clock_),
        page_sessions_(base::RandomHex(32), "", &clock_),
        portal_(PortalOf(options, &sessions_)),
        page_portal_(PortalOf(options, &page_sessions_)),
        router_(AllRoutes(service, &portal_, options.tracking, [this] { return Use(); }),
                WithPages(options.tokens, portal_)),
        page_router_(PageRoutes(service, &page_portal_, [this] { return Use(); }),
                     WithPages({.launcher_key = options.tokens.launcher_key}, page_portal_)),
        calls_(router_.routes()) {}
  // The page listener stops as a member, which comes first.
  ~RunningServer() override {
    if (server_ != nullptr) server_->Stop(kGrace);
  }
  absl::Status Listen(const ApiOptions& options) {
    http::ServerOptions listen{.address = options.address, .port = options.port};
    listen.identity = options.identity;
    listen.admit = [this](const http::Request& request) { return router_.Admit(request); };
    listen.on_answered = [this](const http::AnsweredRequest& answered) { calls_.Add(answered); };
    TUTTI_ASSIGN_OR_RETURN(
        server_, http::Server::Start(
                     listen, [this](const http::Request& request, http::Connection& connection) {
                       return router_.Answer(request, connection);
                     }));
    url_ = server_->url();
    if (!options.portal.empty()) ListenForPages(options);
    listening_ = true;
    return absl::OkStatus();
  }
  const std::string& url() const override { return url_; }
  absl::StatusOr<std::string> portal_url() const override {
    if (!listening_) return absl::UnavailableError("the service starts");
    if (pages_.ok()) return (*pages_)->url();
    return pages_.status();
  }

 private:
  Portal PortalOf(const ApiOptions& options, PortalSessions* sessions) {
    if (options.portal.empty()) return {};
    return {.folder = options.portal,
            .words = &words_,
            .sessions = sessions,
            .all_sessions = {&sessions_, &page_sessions_},
            .is_page_listener = sessions == &page_sessions_,
            .url = [this] { return portal_url(); }};
  }

  static Tokens WithPages(Tokens tokens, const Portal& portal) {
    if (portal.words == nullptr) return tokens;
    tokens.is_page = [&portal](const http::Request& request) {
      // Who has no cookie is no page: for strangers the kernel is not asked.
      if (request.Header("cookie").empty()) return false;
      const auto user = UserOfPeer(request);
      return user.ok() && portal.sessions->Admits(request, *user);
    };
    return tokens;
  }

  // Without them there is no portal for this machine's browsers; the service does without.
  void ListenForPages(const ApiOptions& options) {
    PageListenerOptions listen{.port = options.portal_port, .router = &page_router_};
    if (options.identity != nullptr) listen.tls_url = url_;
    listen.on_answered = [this](const http::AnsweredRequest& answered) { calls_.Add(answered); };
    pages_ = PageListener::Start(listen);
    if (pages_.ok()) return;
    pages_ = absl::FailedPreconditionError(
        absl::StrCat("this machine's browsers have no portal: ", pages_.status().message()));
    spdlog::warn("{}", std::string(pages_.status().message()));
  }

  HttpUse Use() const {
    return {calls_.Read(), listening_ ? server_->connections() : http::ConnectionCounts{}};
  }

  const base::SystemClock clock_;
  PortalWords words_;
  // Those of the service's own address, by TLS, outlive a restart; those of the page listener not.
  PortalSessions sessions_, page_sessions_;
  const Portal portal_, page_portal_;
  Router router_, page_router_;
  CallCounters calls_;
  // Once all listen: a call may come before that.
  std::atomic<bool> listening_ = false;
  std::unique_ptr<http::Server> server_;
  absl::StatusOr<std::unique_ptr<PageListener>> pages_ =
      absl::FailedPreconditionError("this service has no portal: it was started with --no-portal");
  std::string url_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ApiServer>> ApiServer::Start(const ApiOptions& options,
                                                            service::Service* service) {
  auto server = std::make_unique<RunningServer>(options, service);
  TUTTI_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

}  // namespace tutti::api
