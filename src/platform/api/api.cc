#include "platform/api/api.h"

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/api/launcher_routes.h"
#include "platform/api/model_routes.h"
#include "platform/api/rest.h"
#include "platform/api/routing/call_counters.h"
#include "platform/api/tracking_routes.h"

namespace tutti::api {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(1);

std::vector<Route> AllRoutes(service::Service* service, tracking::TrackingServer* tracking,
                             const std::function<HttpUse()>& http) {
  std::vector<Route> routes = UserRoutes(service, http);
  for (Route& route : ModelRoutes(service)) routes.push_back(std::move(route));
  for (Route& route : LauncherRoutes(service)) routes.push_back(std::move(route));
  if (tracking == nullptr) return routes;
  for (Route& route : TrackingRoutes(tracking)) routes.push_back(std::move(route));
  return routes;
}

class RunningServer final : public ApiServer {
 public:
  RunningServer(const ApiOptions& options, service::Service* service)
      : router_(AllRoutes(service, options.tracking, [this] { return Use(); }), options.tokens),
        calls_(router_.routes()) {}
  ~RunningServer() override {
    if (server_ != nullptr) server_->Stop(kGrace);
  }
  absl::Status Listen(const ApiOptions& options) {
    const auto answer = [this](const http::Request& request, http::Connection& connection) {
      return router_.Answer(request, connection);
    };
    http::ServerOptions listen{.address = options.address, .port = options.port};
    listen.identity = options.identity;
    listen.admit = [this](const http::Request& request) { return router_.Admit(request); };
    listen.on_answered = [this](const http::AnsweredRequest& answered) { calls_.Add(answered); };
    TUTTI_ASSIGN_OR_RETURN(server_, http::Server::Start(listen, answer));
    listening_ = server_.get();
    url_ = server_->url();
    return absl::OkStatus();
  }
  const std::string& url() const override { return url_; }

 private:
  HttpUse Use() const {
    const http::Server* const server = listening_;
    return {calls_.Read(), server == nullptr ? http::ConnectionCounts{} : server->connections()};
  }

  Router router_;
  CallCounters calls_;
  // Set once it has started: a call may come before that.
  std::atomic<const http::Server*> listening_ = nullptr;
  std::unique_ptr<http::Server> server_;
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
