#include "platform/api/api.h"

#include <atomic>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "platform/api/launcher_routes.h"
#include "platform/api/model_routes.h"
#include "platform/api/portal/portal_routes.h"
#include "platform/api/rest.h"
#include "platform/api/routing/call_counters.h"
#include "platform/api/tracking_routes.h"
#include "spdlog/spdlog.h"

namespace tutti::api {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(1);
constexpr char kLoopback[] = "127.0.0.1";
constexpr int kMostOfPages = 256;  // connections, by browsers of this machine

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
      : sessions_(options.tokens.launcher_key, &clock_),
        portal_(PortalOf(options, server_)),
        page_portal_(PortalOf(options, page_server_)),
        router_(AllRoutes(service, &portal_, options.tracking, [this] { return Use(); }),
                WithPages(options.tokens, portal_)),
        page_router_(PageRoutes(service, &page_portal_, [this] { return Use(); }),
                     WithPages({.launcher_key = options.tokens.launcher_key}, page_portal_)),
        calls_(router_.routes()) {}
  ~RunningServer() override {
    if (page_server_ != nullptr) page_server_->Stop(kGrace);
    if (server_ != nullptr) server_->Stop(kGrace);
  }
  absl::Status Listen(const ApiOptions& options) {
    http::ServerOptions listen{.address = options.address, .port = options.port};
    listen.identity = options.identity;
    TUTTI_ASSIGN_OR_RETURN(server_, StartServer(listen, router_));
    url_ = server_->url();
    const bool itself = !listen.identity && options.address == kLoopback;
    if (!options.portal.empty() && !itself) ListenForPages(options.portal_port);
    listening_ = true;
    return absl::OkStatus();
  }
  const std::string& url() const override { return url_; }
  std::string portal_url() const override {
    if (!listening_ || portal_.sessions == nullptr) return "";
    return page_server_ == nullptr ? url_ : page_server_->url();
  }

 private:
  // Until it listens nobody is known to ask it.
  Portal PortalOf(const ApiOptions& options, const std::unique_ptr<http::Server>& server) {
    return {.folder = options.portal,
            .sessions = options.portal.empty() ? nullptr : &sessions_,
            .url = [this] { return portal_url(); },
            .user_of = [this, &server](absl::string_view peer) -> PortalSessions::User {
              if (!listening_) return std::nullopt;
              return UserOfLocalPeer(peer, server->address(), server->port());
            }};
  }

  static Tokens WithPages(Tokens tokens, const Portal& portal) {
    if (portal.sessions == nullptr) return tokens;
    tokens.is_page = [&portal](const http::Request& request) {
      // Who has no cookie is no page: for strangers the kernel is not asked.
      return !request.Header("cookie").empty() &&
             portal.sessions->Admits(request, portal.user_of(request.peer));
    };
    return tokens;
  }

  absl::StatusOr<std::unique_ptr<http::Server>> StartServer(http::ServerOptions listen,
                                                            const Router& router) {
    listen.admit = [&router](const http::Request& request) { return router.Admit(request); };
    listen.on_answered = [this](const http::AnsweredRequest& answered) { calls_.Add(answered); };
    return http::Server::Start(
        listen, [&router](const http::Request& request, http::Connection& connection) {
          return router.Answer(request, connection);
        });
  }

  // Without a port there is no portal for this machine's browsers; the service does without.
  void ListenForPages(int port) {
    http::ServerOptions listen{.address = kLoopback, .port = port, .max_connections = kMostOfPages};
    auto server = StartServer(listen, page_router_);
    if (absl::IsAlreadyExists(server.status())) {
      listen.port = 0;
      server = StartServer(listen, page_router_);
    }
    if (!server.ok()) {
      spdlog::warn("the portal has no port on loopback: {}", server.status().ToString());
      return;
    }
    page_server_ = *std::move(server);
  }

  HttpUse Use() const {
    return {calls_.Read(), listening_ ? server_->connections() : http::ConnectionCounts{}};
  }

  const base::SystemClock clock_;
  PortalSessions sessions_;
  const Portal portal_, page_portal_;
  Router router_, page_router_;
  CallCounters calls_;
  // Once both servers are set: a call may come before that.
  std::atomic<bool> listening_ = false;
  std::unique_ptr<http::Server> server_, page_server_;
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
