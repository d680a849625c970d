// ServiceConnection is the client's interface for requests to the service. The real one speaks HTTP
// (ConnectTo); tests script one.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "http/client/client.h"

namespace tutti::client {

// One exchange at a time; Cancel may come from another thread.
class ServiceConnection {
 public:
  virtual ~ServiceConnection() = default;
  // Sends a request as http::Client::Send does. Unavailable also when no service is known, with
  // what to do about it.
  virtual absl::StatusOr<http::ClientResponse> Send(const http::ClientRequest& request) = 0;
  virtual void Cancel() = 0;
};

// Makes connections to the same service; each finds it anew, so that a service that came back at
// another address is found. Thread-safe.
using Connect = std::function<std::unique_ptr<ServiceConnection>()>;

// Returns what makes connections to the service that FindService(home) names at the time of the
// first request.
Connect ConnectTo(const std::filesystem::path& home);

}  // namespace tutti::client
