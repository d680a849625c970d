#include "platform/storage/signing/aws_signature.h"

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/text/percent_encode.h"

namespace tutti::storage {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

// SignedFields are values by name; both the query and the headers are signed so.
using SignedFields = std::map<std::string, std::string>;

std::string TimeOf(const AwsScope& scope) {
  return absl::FormatTime("%Y%m%dT%H%M%SZ", scope.now, absl::UTCTimeZone());
}

std::string ScopeOf(const AwsScope& scope) {
  const std::string day = absl::FormatTime("%Y%m%d", scope.now, absl::UTCTimeZone());
  return absl::StrCat(day, "/", scope.region, "/", scope.service, "/aws4_request");
}

std::string Mac(absl::string_view key, absl::string_view text) {
  const base::Sha256Digest digest = base::HmacSha256(key, text);
  return std::string(digest.begin(), digest.end());
}

std::string Encoded(const SignedFields& query) {
  return absl::StrJoin(query, "&", [](std::string* out, const auto& field) {
    absl::StrAppend(out, base::PercentEncode(field.first), "=", base::PercentEncode(field.second));
  });
}

// Returns the names of the headers that are signed, with ";" between.
std::string NamesOf(const SignedFields& headers) {
  return absl::StrJoin(
      headers, ";", [](std::string* out, const auto& field) { absl::StrAppend(out, field.first); });
}

struct Parts {
  std::string method, path, query;
  SignedFields headers;  // names in lower case
  std::string payload_hash;
};

std::string Signature(const Parts& parts, const Credentials& credentials, const AwsScope& scope) {
  std::string canonical = absl::StrCat(parts.method, "\n", parts.path, "\n", parts.query, "\n");
  for (const auto& [name, value] : parts.headers)
    absl::StrAppend(&canonical, name, ":", value, "\n");
  absl::StrAppend(&canonical, "\n", NamesOf(parts.headers), "\n", parts.payload_hash);
  const std::string text = absl::StrCat(kAlgorithm, "\n", TimeOf(scope), "\n", ScopeOf(scope), "\n",
                                        base::Hex(base::Sha256Of(canonical)));
  std::string key = absl::StrCat("AWS4", credentials.secret_access_key);
  key = Mac(key, absl::FormatTime("%Y%m%d", scope.now, absl::UTCTimeZone()));
  for (const std::string& part : {scope.region, scope.service, std::string("aws4_request")}) {
    key = Mac(key, part);
  }
  return base::Hex(base::HmacSha256(key, text));
}

Headers HeadersWithSignature(absl::string_view method, const ObjectUrl& url, absl::string_view body,
                             SignedFields own, const Credentials& credentials,
                             const AwsScope& scope) {
  const std::string hash = base::Hex(base::Sha256Of(body));
  own["x-amz-date"] = TimeOf(scope);
  own["x-amz-content-sha256"] = hash;
  if (!credentials.session_token.empty()) own["x-amz-security-token"] = credentials.session_token;
  Parts parts{std::string(method), url.path, "", own, hash};
  parts.headers["host"] = url.authority;
  const std::string authorization =
      absl::StrCat(kAlgorithm, " Credential=", credentials.access_key_id, "/", ScopeOf(scope),
                   ", SignedHeaders=", NamesOf(parts.headers),
                   ", Signature=", Signature(parts, credentials, scope));
  Headers headers(own.begin(), own.end());
  headers.emplace_back("Authorization", authorization);
  return headers;
}

}  // namespace

std::string PresignedUrl(absl::string_view method, const ObjectUrl& url,
                         const Credentials& credentials, const AwsScope& scope,
                         absl::Duration lasts) {
  SignedFields query = {
      {"X-Amz-Algorithm", kAlgorithm},
      {"X-Amz-Credential", absl::StrCat(credentials.access_key_id, "/", ScopeOf(scope))},
      {"X-Amz-Date", TimeOf(scope)},
      {"X-Amz-Expires", absl::StrCat(absl::ToInt64Seconds(lasts))},
      {"X-Amz-SignedHeaders", "host"}};
  if (!credentials.session_token.empty()) query["X-Amz-Security-Token"] = credentials.session_token;
  const Parts parts{
      std::string(method), url.path, Encoded(query), {{"host", url.authority}}, "UNSIGNED-PAYLOAD"};
  return url.WithQuery(
      absl::StrCat(parts.query, "&X-Amz-Signature=", Signature(parts, credentials, scope)));
}

Headers SignedHeaders(absl::string_view method, const ObjectUrl& url, const Headers& more,
                      const Credentials& credentials, const AwsScope& scope,
                      absl::string_view body) {
  SignedFields own(more.begin(), more.end());
  return HeadersWithSignature(method, url, body, std::move(own), credentials, scope);
}

Headers SignedFormHeaders(const ObjectUrl& url, absl::string_view form,
                          const Credentials& credentials, const AwsScope& scope) {
  return HeadersWithSignature("POST", url, form, {}, credentials, scope);
}

}  // namespace tutti::storage
