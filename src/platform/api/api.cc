#include "platform/api/api.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/api/launcher_routes.h"
#include "platform/api/rest.h"

namespace tutti::api {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(1);

std::vector<Route> AllRoutes(service::Service* service) {
  std::vector<Route> routes = UserRoutes(service);
  for (Route& route : LauncherRoutes(service)) routes.push_back(std::move(route));
  return routes;
}

class RunningServer final : public ApiServer {
 public:
  RunningServer(const ApiOptions& options, service::Service* service)
      : router_(AllRoutes(service), options.tokens) {}
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
    TUTTI_ASSIGN_OR_RETURN(server_, http::Server::Start(listen, answer));
    url_ = server_->url();
    return absl::OkStatus();
  }
  const std::string& url() const override { return url_; }

 private:
  Router router_;
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
