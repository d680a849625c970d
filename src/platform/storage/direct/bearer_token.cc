#include "platform/storage/direct/bearer_token.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "base/threads/retry_after.h"
#include "http/client/retry_after_header.h"
#include "http/client/transfer.h"
#include "platform/storage/objects/error_text.h"

namespace tutti::storage {
namespace {

constexpr char kPublicAuthority[] = "https://login.microsoftonline.com";
constexpr char kScope[] = "https://storage.azure.com/.default";
constexpr absl::Duration kLongestCall = absl::Seconds(30);
constexpr absl::Duration kBeforeItEnds = absl::Minutes(5);
constexpr absl::Duration kAtLeast = absl::Minutes(1);       // of one that lasts for less
constexpr absl::Duration kBetweenTries = absl::Minutes(1);  // while the last one lasts
constexpr double kLongestLife = 24 * 3600;
constexpr size_t kLongestToken = 64 << 10;

// Returns the error that the library has when it gets no token.
absl::Status NoToken() { return StatusFromText("ClientSecretCredential"); }

}  // namespace

absl::StatusOr<std::string> BearerToken::Get() {
  {
    absl::MutexLock lock(&mutex_);
    if (now_() >= ends_at_ && is_renewing_) {
      // If each asked again, one after the other, each would take as long.
      const auto is_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_renewing_; };
      mutex_.Await(absl::Condition(&is_free));
      TUTTI_RETURN_IF_ERROR(renewed_);
    }
    const bool is_due = now_() >= renew_at_ || now_() >= ends_at_;
    if (!is_due || is_renewing_) return token_;
    is_renewing_ = true;
  }
  const absl::Time asked = now_();
  const absl::StatusOr<Given> given = Ask();
  absl::MutexLock lock(&mutex_);
  is_renewing_ = false;
  renewed_ = given.status();
  if (given.ok()) {
    token_ = given->token;
    ends_at_ = asked + std::max(given->lasts, kAtLeast);
    renew_at_ = asked + std::max(given->lasts - kBeforeItEnds, kAtLeast);
    return token_;
  }
  renew_at_ = now_() + kBetweenTries;
  if (now_() >= ends_at_) return renewed_;
  return token_;
}

absl::StatusOr<BearerToken::Given> BearerToken::Ask() const {
  const std::string form = absl::StrCat(
      "grant_type=client_credentials&client_id=", base::PercentEncode(credentials_.client),
      "&client_secret=", base::PercentEncode(credentials_.client_secret),
      "&scope=", base::PercentEncode(kScope));
  const std::string& authority = credentials_.authority;
  std::string body;
  const http::TransferRequest request{
      .method = "POST",
      .url = absl::StrCat(authority.empty() ? kPublicAuthority : authority, "/",
                          base::PercentEncode(credentials_.tenant), "/oauth2/v2.0/token"),
      .body = form,
      .deadline = base::Deadline::After(kLongestCall),
      .only_http1 = true,
      .on_chunk = [&](absl::string_view piece) {
        if (body.size() + piece.size() > kLongestToken) return NoToken();
        absl::StrAppend(&body, piece);
        return absl::OkStatus();
      }};
  const std::atomic<bool> never = false;
  const auto answer = http::Transfer(request, never);
  if (!answer.ok()) {
    return StatusFromText(absl::StrCat("Could not connect: ", answer.status().message()));
  }
  if (answer->status == 429 || answer->status >= 500) {
    return base::WithRetryAfter(StatusFromText(absl::StrCat("HTTP status ", answer->status)),
                                http::RetryAfterIn(*answer, now_()));
  }
  const auto text = nlohmann::json::parse(body, nullptr, false);
  if (!answer->ok() || !text.is_object()) return NoToken();
  const auto token = text.find("access_token"), lasts = text.find("expires_in");
  if (token == text.end() || !token->is_string()) return NoToken();
  double seconds = lasts != text.end() && lasts->is_number() ? lasts->get<double>() : 0;
  seconds = seconds > 0 && seconds < kLongestLife ? seconds : 0;
  return Given{token->get<std::string>(), absl::Seconds(seconds)};
}

}  // namespace tutti::storage
