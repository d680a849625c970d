#include "platform/launch/delivery/service_link.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/http/url.h"
#include "spec/types/endpoint.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

bool IsPassing(int status) {
  return status == 401 || status == 408 || status == 429 || (status >= 500 && status != 507);
}

}  // namespace

ServiceLink::ServiceLink(const spec::LaunchPlan& plan)
    : directory_(plan.directory),
      service_file_(plan.service_file),
      prefix_(absl::StrCat("/internal/v1/allocations/", http::PercentEncode(plan.allocation_id),
                           "/nodes/")),
      pause_(kFirstPause) {}

std::string ServiceLink::Target(int node, absl::string_view rest) const {
  return absl::StrCat(prefix_, node, rest);
}

absl::Status ServiceLink::Connect() {
  {
    absl::MutexLock lock(&mutex_);
    if (abandoned_) return absl::CancelledError("the launcher has given the service up");
    if (client_ != nullptr) return absl::OkStatus();
  }
  const absl::StatusOr<spec::Endpoint> service = spec::ReadEndpoint(service_file_);
  if (!service.ok()) return absl::UnavailableError(service.status().message());
  auto client =
      std::make_shared<http::Client>(service->address, service->token, service->certificate);
  known_ = spec::ToJson(*service);
  absl::MutexLock lock(&mutex_);
  if (abandoned_) return absl::CancelledError("the launcher has given the service up");
  client_ = std::move(client);
  return absl::OkStatus();
}

absl::StatusOr<http::ClientResponse> ServiceLink::TryCall(const http::ClientRequest& request) {
  TUTTI_RETURN_IF_ERROR(Connect());
  std::shared_ptr<http::Client> client;
  {
    absl::MutexLock lock(&mutex_);
    client = client_;
    if (abandoned_) return absl::CancelledError("the launcher has given the service up");
  }
  absl::StatusOr<http::ClientResponse> response = client->Send(request);
  const bool passing =
      response.ok()
          ? IsPassing(response->status) || (!response->ok() && HasMoved())
          : absl::IsUnavailable(response.status()) || absl::IsDeadlineExceeded(response.status());
  if (passing) {
    const std::string why(response.ok() ? http::ToStatus(*response).message()
                                        : response.status().message());
    absl::MutexLock lock(&mutex_);
    client_.reset();
    return absl::UnavailableError(why);
  }
  if (!response.ok()) return response.status();
  TUTTI_RETURN_IF_ERROR(http::ToStatus(*response));
  pause_ = kFirstPause;
  if (!said_.empty()) spdlog::info("the service answers again");
  said_.clear();
  return response;
}

bool ServiceLink::HasMoved() const {
  const absl::StatusOr<spec::Endpoint> service = spec::ReadEndpoint(service_file_);
  return service.ok() && spec::ToJson(*service) != known_;
}

absl::StatusOr<http::ClientResponse> ServiceLink::Call(const http::ClientRequest& request,
                                                       base::Deadline deadline) {
  while (true) {
    absl::StatusOr<http::ClientResponse> response = TryCall(request);
    if (response.ok() || !absl::IsUnavailable(response.status())) return response;
    SayOnce(response.status());
    if (NobodyWaits()) return absl::AbortedError(kNobodyWaits);
    if (deadline.Expired()) return absl::DeadlineExceededError(response.status().message());
    PauseAfterFailure();
  }
}

bool ServiceLink::NobodyWaits() const {
  const auto removed = [](const std::filesystem::path& folder) {
    std::error_code error;
    return !std::filesystem::exists(folder, error) && !error;
  };
  return removed(directory_) && removed(service_file_.parent_path());
}

void ServiceLink::SayOnce(const absl::Status& status) {
  if (said_ == status.message()) return;
  said_ = std::string(status.message());
  spdlog::warn("{}; trying on", said_);
}

void ServiceLink::PauseAfterFailure() {
  Pause(pause_);
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void ServiceLink::Pause(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&abandoned_), duration);
}

void ServiceLink::Abandon() {
  absl::MutexLock lock(&mutex_);
  abandoned_ = true;
  if (client_ != nullptr) client_->Cancel();
}

}  // namespace tutti::launch
