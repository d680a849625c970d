#include "platform/storage/signing/object_url.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/text/percent_encode.h"

namespace tutti::storage {
namespace {

constexpr absl::string_view kPublicCloud = "core.windows.net";

// Splits "https://host:1/base" and puts the object below its path.
absl::StatusOr<ObjectUrl> UrlBelow(absl::string_view base, absl::string_view path) {
  ObjectUrl url;
  for (const char* scheme : {"http", "https"}) {
    if (absl::ConsumePrefix(&base, absl::StrCat(scheme, "://"))) url.scheme = scheme;
  }
  if (url.scheme.empty()) {
    return absl::InvalidArgumentError("the endpoint is no URL of http or https");
  }
  base = absl::StripSuffix(base, "/");
  const size_t slash = base.find('/');
  url.authority = std::string(base.substr(0, slash));
  if (slash != absl::string_view::npos) url.path = std::string(base.substr(slash));
  absl::StrAppend(&url.path, "/", path);
  return url;
}

std::string PathIn(const spec::DataPlace& place, absl::string_view container) {
  const std::string path = base::PercentEncode(place.path, /*keep_slash=*/true);
  if (container.empty() || path.empty()) return absl::StrCat(container, path);
  return absl::StrCat(container, "/", path);
}

absl::StatusOr<ObjectUrl> AzureUrl(const spec::DataPlace& place) {
  const absl::string_view service = place.kind == spec::StoreKind::kAzureFile ? "file" : "blob";
  std::string base = place.endpoint;
  if (!absl::StrContains(base, "://")) {
    base = absl::StrCat("https://", place.account, ".", service, ".",
                        base.empty() ? kPublicCloud : absl::string_view(base));
  }
  // A server of its own has the account in its path, which the endpoint need not say.
  const bool is_own = !absl::StrContains(base, absl::StrCat("//", place.account, "."));
  base = absl::StrReplaceAll(base, {{".dfs.", ".blob."}});
  if (is_own && !absl::EndsWith(absl::StripSuffix(base, "/"), absl::StrCat("/", place.account))) {
    base = absl::StrCat(absl::StripSuffix(base, "/"), "/", place.account);
  }
  return UrlBelow(base, PathIn(place, place.container));
}

absl::StatusOr<ObjectUrl> S3Url(const spec::DataPlace& place) {
  if (!place.endpoint.empty()) return UrlBelow(place.endpoint, PathIn(place, place.container));
  if (place.region.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the region of bucket \"", place.container,
                     "\" is not known: make a datastore of it that has `region`"));
  }
  const std::string host = absl::StrCat("s3.", place.region, ".amazonaws.com");
  // A certificate is for one name below the host, so a bucket with a dot stands in the path.
  if (absl::StrContains(place.container, ".")) {
    return UrlBelow(absl::StrCat("https://", host), PathIn(place, place.container));
  }
  return UrlBelow(absl::StrCat("https://", place.container, ".", host), PathIn(place, ""));
}

}  // namespace

std::string ObjectUrl::WithQuery(absl::string_view query) const {
  return absl::StrCat(scheme, "://", authority, path, query.empty() ? "" : "?", query);
}

absl::StatusOr<ObjectUrl> UrlOf(const spec::DataPlace& place) {
  if (place.is_pattern) return absl::InvalidArgumentError("it is a pattern: name one object");
  switch (place.kind) {
    case spec::StoreKind::kLocal:
      break;
    case spec::StoreKind::kNfs:
      return absl::InvalidArgumentError("it is on a file server, which has no signed URLs");
    case spec::StoreKind::kAzureBlob:
    case spec::StoreKind::kAzureDataLake:
    case spec::StoreKind::kAzureFile:
      return AzureUrl(place);
    case spec::StoreKind::kS3:
      return S3Url(place);
    case spec::StoreKind::kGcs:
      return UrlBelow(place.endpoint.empty() ? "https://storage.googleapis.com" : place.endpoint,
                      PathIn(place, place.container));
  }
  return absl::InvalidArgumentError("it is a folder of this machine, which has no URL");
}

}  // namespace tutti::storage
