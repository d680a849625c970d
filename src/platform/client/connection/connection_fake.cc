#include "platform/client/connection/connection_fake.h"

#include <atomic>

#include "absl/strings/str_cat.h"

namespace tutti::client {

class FakeService::Connection final : public ServiceConnection {
 public:
  explicit Connection(FakeService* service) : service_(service) {}
  absl::StatusOr<http::ClientResponse> Send(const http::ClientRequest& request) override {
    if (cancelled_) return absl::CancelledError("cancelled");
    return service_->Handle(request);
  }
  void Cancel() override { cancelled_ = true; }

 private:
  FakeService* const service_;
  std::atomic<bool> cancelled_ = false;
};

Connect FakeService::connect() {
  return [this] { return std::make_unique<Connection>(this); };
}

std::vector<std::string> FakeService::requests() const {
  absl::MutexLock lock(&mutex_);
  return requests_;
}

absl::StatusOr<http::ClientResponse> FakeService::Handle(const http::ClientRequest& request) {
  {
    absl::MutexLock lock(&mutex_);
    requests_.push_back(absl::StrCat(request.method, " ", request.target));
  }
  const Answer answer = handler_(request);
  if (answer.reached && request.on_connected) request.on_connected();
  http::ClientResponse response;
  response.status = answer.status;
  for (const std::string& chunk : answer.chunks) {
    if (request.on_chunk && response.ok()) {
      if (absl::Status status = request.on_chunk(chunk); !status.ok()) return status;
    } else {
      response.body += chunk;
    }
  }
  if (!answer.then.ok()) return answer.then;
  return response;
}

}  // namespace tutti::client
