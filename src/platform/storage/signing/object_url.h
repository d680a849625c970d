// Writes the address by which anybody's HTTP client asks a store for an object. Pure functions;
// thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/types/data_place.h"

namespace tutti::storage {

// ObjectUrl is an address in its parts, as signatures take them.
struct ObjectUrl {
  std::string scheme;     // "http", "https"
  std::string authority;  // host, and port if it is not the scheme's
  std::string path;       // percent-encoded, begins with "/"

  // Returns the address; `query` without "?", may be empty.
  std::string WithQuery(absl::string_view query) const;
};

// Returns the address of the place's object, or of its container if it has no path. Of S3 the
// bucket is in the host where that is the provider's own, else in the path. InvalidArgument for a
// pattern and for a folder of this machine; FailedPrecondition for a bucket of AWS whose region is
// not known.
absl::StatusOr<ObjectUrl> UrlOf(const spec::DataPlace& place);

}  // namespace tutti::storage
