#include "platform/storage/direct/store_requests.h"

#include <atomic>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/status.h"
#include "platform/storage/signing/aws_signature.h"
#include "platform/storage/signing/object_url.h"
#include "platform/storage/signing/shared_key.h"

namespace tutti::storage {
namespace {

constexpr char kAzureVersion[] = "2022-11-02";
constexpr absl::Duration kLongestHead = absl::Seconds(30), kLongestGet = absl::Hours(1);
constexpr absl::Duration kStall = absl::Minutes(2);  // without a byte of the answer
constexpr size_t kPiece = 512 << 10;                 // the most that older versions of libcurl take

// libcurl takes such parts out of an address, so that it would be another object's.
bool HasDots(absl::string_view path) {
  const std::string whole = absl::StrCat("/", path, "/");
  return absl::StrContains(whole, "/./") || absl::StrContains(whole, "/../");
}

std::string RangeOf(const ObjectRequest& request) {
  const auto [from, bytes] = *request.range;
  return absl::StrCat("bytes=", from, "-", from + bytes - 1);
}

}  // namespace

StoreRequests::StoreRequests(spec::DataPlace place, Credentials credentials, StoreWords words,
                             std::optional<std::string> proxy)
    : place_(std::move(place)),
      credentials_(std::move(credentials)),
      words_(words),
      proxy_(std::move(proxy)),
      token_(credentials_.kind == spec::CredentialKind::kServicePrincipal
                 ? std::make_unique<BearerToken>(credentials_)
                 : nullptr) {
  place_.is_pattern = false;
  place_.path.clear();
  if (place_.region.empty()) place_.region = "us-east-1";
}

absl::Status StoreRequests::SignForAzure(const ObjectRequest& request,
                                         http::TransferRequest& transfer) const {
  spec::DataPlace of_path = place_;
  of_path.path = request.path;
  TUTTI_ASSIGN_OR_RETURN(const ObjectUrl url, UrlOf(of_path));
  const bool is_sas = credentials_.kind == spec::CredentialKind::kSas;
  transfer.url = url.WithQuery(is_sas ? absl::StripPrefix(credentials_.sas, "?") : "");
  std::map<std::string, std::string> headers = {
      {"x-ms-date",
       absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone())},
      {"x-ms-version", kAzureVersion}};
  if (request.range) headers["x-ms-range"] = RangeOf(request);
  transfer.headers.assign(headers.begin(), headers.end());
  TUTTI_ASSIGN_OR_RETURN(
      std::string authorization,
      AuthorizationForAzure({request.method, url.path, {}, std::move(headers)}, url.scheme));
  if (!authorization.empty()) transfer.headers.emplace_back("Authorization", authorization);
  return absl::OkStatus();
}

// "" for none: public data, and a signature that stands in the address.
absl::StatusOr<std::string> StoreRequests::AuthorizationForAzure(const RequestToSign& to_sign,
                                                                 absl::string_view scheme) const {
  if (credentials_.kind == spec::CredentialKind::kAccountKey) {
    return SharedKeyOf(to_sign, place_.account, credentials_.account_key);
  }
  if (token_ == nullptr) return "";
  // Anybody on the way could use it.
  if (scheme != "https") return absl::InvalidArgumentError("a token goes by https alone");
  TUTTI_ASSIGN_OR_RETURN(const std::string token, token_->Get());
  return absl::StrCat("Bearer ", token);
}

absl::Status StoreRequests::Sign(const ObjectRequest& request,
                                 http::TransferRequest& transfer) const {
  if (words_ == StoreWords::kAzure) return SignForAzure(request, transfer);
  spec::DataPlace of_path = place_;
  of_path.path = request.path;
  TUTTI_ASSIGN_OR_RETURN(const ObjectUrl url, UrlOf(of_path));
  transfer.url = url.WithQuery("");
  // The store reports no checksum of a range.
  if (request.method == "PUT") {
    transfer.headers = {{"content-md5", request.body_md5}};
  } else if (words_ == StoreWords::kS3 && !request.range) {
    transfer.headers = {{"x-amz-checksum-mode", "ENABLED"}};
  }
  if (credentials_.kind == spec::CredentialKind::kAccessKey) {
    transfer.headers = SignedHeaders(request.method, url, transfer.headers, credentials_,
                                     {place_.region, "s3", absl::Now()}, request.body);
  }
  if (request.range) transfer.headers.emplace_back("Range", RangeOf(request));
  return absl::OkStatus();
}

absl::StatusOr<http::TransferResponse> StoreRequests::Send(const ObjectRequest& request) {
  if (HasDots(request.path)) return absl::InvalidArgumentError("no address has such a path");
  const bool is_head = request.method == "HEAD";
  http::TransferRequest transfer{
      .method = request.method,
      .body = request.body,
      .deadline = base::Deadline::After(is_head ? kLongestHead : kLongestGet),
      .stall = is_head ? kLongestHead : kStall,
      .only_http1 = true,
      .piece_bytes = kPiece,
      .proxy = proxy_,
      .on_header = request.on_header,
      .on_chunk = request.on_chunk};
  TUTTI_RETURN_IF_ERROR(Sign(request, transfer));
  const std::atomic<bool> never = false;
  http::KeptConnections connections = Take();
  auto answer = http::Transfer(transfer, never, &connections);
  // After a request that was broken off the connection has been closed.
  GiveBack(std::move(connections));
  if (absl::IsDeadlineExceeded(answer.status())) {
    return absl::UnavailableError(answer.status().message());
  }
  return answer;
}

http::KeptConnections StoreRequests::Take() {
  absl::MutexLock lock(&mutex_);
  if (idle_.empty()) return {};
  http::KeptConnections taken = std::move(idle_.back());
  idle_.pop_back();
  return taken;
}

void StoreRequests::GiveBack(http::KeptConnections connections) {
  absl::MutexLock lock(&mutex_);
  idle_.push_back(std::move(connections));
}

}  // namespace tutti::storage
