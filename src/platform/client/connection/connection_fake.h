// FakeService plays a service for tests: a function gives the answers, and connections are counted.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "platform/client/connection/connection.h"

namespace tutti::client {

// Thread-safe. Outlives its connections.
class FakeService {
 public:
  // What one request gets. `chunks` go to on_chunk when the status is 2xx and the request has one,
  // else they are the body; then `then` decides how the exchange ends.
  struct Answer {
    int status = 200;
    std::vector<std::string> chunks;
    absl::Status then;
    bool reached = true;  // false: no connection could be made, which `then` tells
  };
  using Handler = std::function<Answer(const http::ClientRequest&)>;

  explicit FakeService(Handler handler) : handler_(std::move(handler)) {}

  Connect connect();
  // Returns "METHOD TARGET" of every request so far.
  std::vector<std::string> requests() const;

 private:
  class Connection;
  absl::StatusOr<http::ClientResponse> Handle(const http::ClientRequest& request);

  const Handler handler_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::client
