#include "platform/launch/delivery/service_link.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "http/url.h"
#include "spec/types/service_endpoint.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr char kGivenUp[] = "the launcher has given the service up";

bool IsPassing(int status) {
  return status == 401 || status == 408 || status == 429 || (status >= 500 && status != 507);
}

// As an error of the service is (http::ErrorResponse); a proxy words it another way.
bool IsOfTheService(const http::ClientResponse& response) {
  const auto json = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("error") || !json["error"].is_object()) return false;
  const nlohmann::json& error = json["error"];
  return error.contains("code") && error["code"].is_string() && error["code"] != "";
}

}  // namespace

ServiceLink::ServiceLink(const spec::LaunchPlan& plan)
    : directory_(plan.directory),
      service_file_(plan.service_file),
      prefix_(absl::StrCat("/internal/v1/allocations/", base::PercentEncode(plan.allocation_id))),
      token_(plan.launcher_token),
      pause_(kFirstPause, kLongestPause) {}

std::string ServiceLink::Target(absl::string_view rest) const {
  return absl::StrCat(prefix_, rest);
}

std::string ServiceLink::Target(int node, absl::string_view rest) const {
  return absl::StrCat(prefix_, "/nodes/", node, rest);
}

ServiceLink::Turn::Turn(ServiceLink& link, Urgency urgency) : link_(link) {
  absl::MutexLock lock(&link.mutex_);
  int& waiting = link.waiting_[static_cast<size_t>(urgency)];
  ++waiting;
  if (link.turn_ && link.turn_ <= Urgency::kUsage && urgency > *link.turn_) {
    // A client that was cancelled is of no use any more: its call may be over already.
    link.broken_off_ = true;
    if (link.client_ != nullptr) std::exchange(link.client_, nullptr)->Cancel();
  }
  const auto is_turn = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(link.mutex_) {
    return link.IsTurnOf(urgency);
  };
  link.mutex_.Await(absl::Condition(&is_turn));
  --waiting;
  link.turn_ = urgency;
  link.broken_off_ = false;
}

ServiceLink::Turn::~Turn() {
  absl::MutexLock lock(&link_.mutex_);
  link_.turn_.reset();
}

bool ServiceLink::IsTurnOf(Urgency urgency) const {
  if (turn_) return false;
  for (size_t more = static_cast<size_t>(urgency) + 1; more < waiting_.size(); ++more) {
    if (waiting_[more] > 0) return false;
  }
  return true;
}

absl::StatusOr<std::shared_ptr<http::Client>> ServiceLink::Connect() {
  {
    absl::MutexLock lock(&mutex_);
    if (abandoned_) return absl::CancelledError(kGivenUp);
    if (client_ != nullptr) return client_;
  }
  const absl::StatusOr<spec::Endpoint> service = spec::ReadEndpoint(service_file_);
  if (!service.ok()) return absl::UnavailableError(service.status().message());
  auto client = std::make_shared<http::Client>(
      service->address, token_.empty() ? service->token : token_, service->certificate);
  known_ = spec::ToJson(*service);
  absl::MutexLock lock(&mutex_);
  if (abandoned_) return absl::CancelledError(kGivenUp);
  if (broken_off_) client->Cancel();  // it came before there was one to cancel
  client_ = client;
  return client;
}

absl::StatusOr<http::ClientResponse> ServiceLink::TryCall(const http::ClientRequest& request,
                                                          Urgency urgency) {
  const Turn turn(*this, urgency);
  TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<http::Client> client, Connect());
  absl::StatusOr<http::ClientResponse> response = client->Send(request);
  {
    absl::MutexLock lock(&mutex_);
    if (abandoned_) return absl::CancelledError(kGivenUp);
    if (broken_off_) client_.reset();
    if (broken_off_ && !response.ok()) {
      return absl::DeadlineExceededError("broken off for a call that is more urgent");
    }
  }
  if (response.ok()) NoteIfPutOff(request, *response, urgency);
  return Judge(std::move(response));
}

void ServiceLink::NoteIfPutOff(const http::ClientRequest& request,
                               const http::ClientResponse& response, Urgency urgency) {
  if (request.method == "GET" || response.status != 503 || !IsOfTheService(response)) return;
  put_off_[static_cast<size_t>(urgency)] = absl::ToInt64Nanoseconds(base::SteadyNow());
}

absl::StatusOr<http::ClientResponse> ServiceLink::Judge(
    absl::StatusOr<http::ClientResponse> response) {
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
  last_answer_ = absl::ToInt64Nanoseconds(base::SteadyNow());
  absl::MutexLock lock(&mutex_);
  pause_.Reset();
  if (!said_.empty()) spdlog::info("the service answers again");
  said_.clear();
  return response;
}

void ServiceLink::Disconnect() {
  absl::MutexLock lock(&mutex_);
  client_.reset();
}

bool ServiceLink::HasMoved() const {
  const absl::StatusOr<spec::Endpoint> service = spec::ReadEndpoint(service_file_);
  return service.ok() && spec::ToJson(*service) != known_;
}

absl::StatusOr<http::ClientResponse> ServiceLink::Call(const http::ClientRequest& request,
                                                       base::Deadline deadline, Urgency urgency) {
  while (true) {
    absl::StatusOr<http::ClientResponse> response = TryCall(request, urgency);
    if (response.ok() || !absl::IsUnavailable(response.status())) return response;
    SayOnce(response.status());
    if (NobodyWaits()) return absl::AbortedError(kNobodyWaits);
    if (deadline.Expired()) return absl::DeadlineExceededError(response.status().message());
    PauseAfterFailure();
  }
}

absl::StatusOr<http::ClientResponse> ServiceLink::CallWithin(const http::ClientRequest& request,
                                                             Patience patience) {
  while (true) {
    auto response = Call(request, patience.EndAfter(put_off(Urgency::kOutput)));
    if (!absl::IsDeadlineExceeded(response.status()) ||
        patience.EndAfter(put_off(Urgency::kOutput)).Expired()) {
      return response;
    }
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
  absl::MutexLock lock(&mutex_);
  if (said_ == status.message()) return;
  said_ = std::string(status.message());
  spdlog::warn("{}; trying on", said_);
}

void ServiceLink::PauseAfterFailure() {
  absl::Duration pause;
  {
    absl::MutexLock lock(&mutex_);
    pause = pause_.Next();
  }
  Pause(pause);
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
