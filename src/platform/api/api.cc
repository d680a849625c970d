#include "platform/api/api.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include "base/status.h"
#include "platform/api/launcher_calls.h"
#include "platform/api/rest.h"
#include "platform/api/router.h"
#include "platform/api/tls_files.h"
#include "platform/http/server.h"
#include "platform/service/state_folder.h"

namespace tutti::api {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(1);

std::vector<Route> AllRoutes(service::Service* service) {
  std::vector<Route> routes = UserRoutes(service);
  for (Route& route : LauncherRoutes(service)) routes.push_back(std::move(route));
  return routes;
}

// Members are made from top to bottom, each on what is above it, and go in the other order.
class RunningPlatform final : public Platform {
 public:
  absl::Status Open(const ServeOptions& options) {
    TUTTI_ASSIGN_OR_RETURN(service::StateFolder folder,
                           service::StateFolder::Open(options.directory));
    folder_ = std::make_unique<service::StateFolder>(std::move(folder));
    TUTTI_ASSIGN_OR_RETURN(store_, store::Store::Open(folder_->database()));
    TUTTI_ASSIGN_OR_RETURN(engine_, options.make_engine());
    service::ServiceOptions service = options.service;
    service.directory = options.directory;
    service.launcher_file = folder_->launcher_file();
    service::Engines engines(engine_.get());
    if (options.make_clusters) {
      TUTTI_ASSIGN_OR_RETURN(clusters_, options.make_clusters(folder_->launcher_file()));
    }
    for (const auto& [name, cluster] : clusters_.engines) engines.clusters[name] = cluster.get();
    engines.broken = clusters_.broken;
    TUTTI_ASSIGN_OR_RETURN(service_, service::Service::Open(std::move(service), store_.get(),
                                                            std::move(engines), &clock_));
    router_ = std::make_unique<Router>(
        AllRoutes(service_.get()),
        Tokens{.user = folder_->user_token(), .launcher = folder_->launcher_token()});
    http::ServerOptions listen{.address = options.address, .port = options.port};
    if (options.tls) {
      TUTTI_ASSIGN_OR_RETURN(listen.identity, IdentityIn(options.directory, options.address));
    }
    TUTTI_ASSIGN_OR_RETURN(
        server_, http::Server::Start(
                     listen, [this](const http::Request& request, http::Connection& connection) {
                       return router_->Answer(request, connection);
                     }));
    url_ = server_->url();
    TUTTI_RETURN_IF_ERROR(
        folder_->Announce(url_, listen.identity ? listen.identity->certificate() : ""));
    service_->Run();
    return absl::OkStatus();
  }

  ~RunningPlatform() override {
    if (server_ == nullptr) return;
    if (const absl::Status status = folder_->Withdraw(); !status.ok()) {
      spdlog::warn("{}", status.ToString());
    }
    service_->Stop();  // first, so that nobody waits in it
    server_->Stop(kGrace);
  }

  const std::string& url() const override { return url_; }
  const std::string& user_token() const override { return folder_->user_token(); }
  service::Service& service() override { return *service_; }

 private:
  const base::SystemClock clock_;
  std::unique_ptr<service::StateFolder> folder_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<engine::Engine> engine_;
  ServeOptions::Clusters clusters_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<http::Server> server_;
  std::string url_;
};

// Each rank of a running job has up to three files open here.
void RaiseTheLimitOfOpenFiles() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Platform>> Platform::Start(const ServeOptions& options) {
  auto platform = std::make_unique<RunningPlatform>();
  TUTTI_RETURN_IF_ERROR(platform->Open(options));
  return platform;
}

absl::Status Serve(const ServeOptions& options) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // threads that start now inherit it
  RaiseTheLimitOfOpenFiles();
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<Platform> platform, Platform::Start(options));
  if (options.on_ready) options.on_ready(platform->url(), options.directory / "token");
  int signal = 0;
  ::sigwait(&signals, &signal);
  spdlog::info("signal {}: ending; jobs that run go on", signal);
  return absl::OkStatus();
}

}  // namespace tutti::api
