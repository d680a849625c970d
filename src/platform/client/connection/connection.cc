#include "platform/client/connection/connection.h"

#include <atomic>
#include <cstdlib>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "platform/client/connection/find_service.h"
#include "platform/client/connection/outage.h"

namespace tutti::client {
namespace {

class HttpConnection final : public ServiceConnection {
 public:
  explicit HttpConnection(std::filesystem::path home) : home_(std::move(home)) {}

  absl::StatusOr<http::ClientResponse> Send(const http::ClientRequest& request) override {
    TUTTI_ASSIGN_OR_RETURN(http::Client* const client, Open());
    auto response = client->Send(request);
    if (response.ok() && response->status == 401) return TokenRefused(client->base_url());
    if (!absl::IsUnavailable(response.status())) return response;
    const absl::string_view why = response.status().message();
    const char* hint = "";
    if (absl::StrContains(why, "certificate is not trusted")) {
      hint = known_ ? "; it is not the one that service.json or TUTTI_CERTIFICATE tells of"
                    : "; TUTTI_CERTIFICATE names a copy of its home's certificate.pem";
    }
    absl::Status away = absl::UnavailableError(
        absl::StrCat("the service at ", client->base_url(), " is not reachable: ", why, hint));
    return absl::StrContains(why, "cannot find host ") ? NeverThere(std::move(away)) : away;
  }

  void Cancel() override {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    if (client_ != nullptr) client_->Cancel();
  }

 private:
  absl::StatusOr<http::Client*> Open() {
    absl::MutexLock lock(&mutex_);
    if (cancelled_) return absl::CancelledError("cancelled");
    if (client_ == nullptr) {
      TUTTI_ASSIGN_OR_RETURN(const spec::Endpoint service, FindService(home_));
      known_ = !service.certificate.empty();
      client_ = std::make_unique<http::Client>(service.address, service.token, service.certificate);
    }
    return client_.get();
  }

  absl::Status TokenRefused(const std::string& url) const {
    const bool is_set = std::getenv("TUTTI_TOKEN") != nullptr;
    const std::string file = (home_ / "service.json").string();
    return absl::UnauthenticatedError(absl::StrCat(
        "the service at ", url, " refuses the token of ", is_set ? "TUTTI_TOKEN" : file, ": set ",
        is_set ? "it" : "TUTTI_TOKEN", " to what is in the file `token` of that service's home",
        is_set ? absl::StrCat(", or unset it where ", file, " is that service's") : ""));
  }

  const std::filesystem::path home_;
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> known_ = false;  // the service has a certificate that we were told of
  std::unique_ptr<http::Client> client_ ABSL_GUARDED_BY(mutex_);  // never replaced once made
};

}  // namespace

Connect ConnectTo(const std::filesystem::path& home) {
  return [home] { return std::make_unique<HttpConnection>(home); };
}

}  // namespace tutti::client
