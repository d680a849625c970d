// ApiServer serves HTTP for a service: the native REST interface (docs/formats/rest.md,
// openapi.json), the calls of launchers (docs/formats/launch-plan.md) and, where it is asked for,
// those of MLflow's clients (docs/monitoring/mlflow.md).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "platform/api/routing/router.h"
#include "platform/http/server/server.h"
#include "platform/service/service.h"
#include "platform/tracking/tracking_server.h"

namespace tutti::api {

struct ApiOptions {
  std::string address = "127.0.0.1";               // numeric
  int port = 6280;                                 // 0: any free one
  std::shared_ptr<const http::Identity> identity;  // HTTPS alone; null: HTTP
  Tokens tokens;
  tracking::TrackingServer* tracking = nullptr;  // null: MLflow's calls are not answered
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
};

}  // namespace tutti::api
