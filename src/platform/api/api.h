// ApiServer serves HTTP for a service: the native REST interface (docs/formats/rest.md,
// openapi.json), the calls of launchers (docs/formats/launch-plan.md), the portal, which is a page
// over that interface (docs/monitoring/portal.md), and, where it is asked for, the calls of
// MLflow's clients (docs/monitoring/mlflow.md).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "http/server/server.h"
#include "platform/api/routing/router.h"
#include "platform/service/service.h"
#include "platform/tracking/tracking_server.h"

namespace tutti::api {

struct ApiOptions {
  std::string address = "127.0.0.1";               // numeric
  int port = 6280;                                 // 0: any free one
  std::shared_ptr<const http::Identity> identity;  // HTTPS alone; null: HTTP
  Tokens tokens;
  tracking::TrackingServer* tracking = nullptr;  // null: MLflow's calls are not answered
  // The portal's files; empty: there is no portal.
  std::filesystem::path portal;
  int portal_port = 6281;  // of portal/page_listener.h; 0: any free one
  // Keeps which sessions by TLS have ended; empty: nothing does.
  std::filesystem::path sessions_file;
};

// Answers requests from Start on. Thread-safe.
class ApiServer {
 public:
  // Starts to listen. AlreadyExists: the port is taken. `service` and `tracking` outlive it.
  static absl::StatusOr<std::unique_ptr<ApiServer>> Start(const ApiOptions& options,
                                                          service::Service* service);
  // Requests in work get a second. Call Service::Stop first, so that nobody waits in it.
  virtual ~ApiServer() = default;
  virtual const std::string& url() const = 0;  // "http://127.0.0.1:6280"
  // Returns where this machine's browsers find the portal, "http://tutti-01.localhost:6281", or why
  // they find it nowhere.
  virtual absl::StatusOr<std::string> portal_url() const = 0;
};

}  // namespace tutti::api
