// Signs requests to AWS and to what speaks as it does, by version 4 of its signatures. Pure
// functions; thread-safe.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/storage/signing/object_url.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// AwsScope is what a signature is valid for.
struct AwsScope {
  std::string region;   // "us-east-1"
  std::string service;  // "s3", "sts"
  absl::Time now;
};

// Returns an address by which anybody can do `method` with the object until `lasts` is over, which
// is at most 7 days (AWS's own limit).
std::string PresignedUrl(absl::string_view method, const ObjectUrl& url,
                         const Credentials& credentials, const AwsScope& scope,
                         absl::Duration lasts);

using Headers = std::vector<std::pair<std::string, std::string>>;

// Returns the headers, beside Host, that a request with that body needs, those of `more` among
// them; their names are in lower case. `url.authority` is exactly what the request's Host says, and
// its query is empty.
Headers SignedHeaders(absl::string_view method, const ObjectUrl& url, const Headers& more,
                      const Credentials& credentials, const AwsScope& scope,
                      absl::string_view body = "");

// Returns the headers, beside Host and Content-Type, that a POST of this form needs.
// `url.authority` as above.
Headers SignedFormHeaders(const ObjectUrl& url, absl::string_view form,
                          const Credentials& credentials, const AwsScope& scope);

}  // namespace tutti::storage
