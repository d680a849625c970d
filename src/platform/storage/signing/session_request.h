// Asks S3's token service (STS) for keys that end by themselves and may do less than the one that
// asks: what is sent, and what comes back. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/storage/signing/object_url.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

struct SessionRequest {
  ObjectUrl url;       // of the server
  std::string region;  // to sign for
  std::string form;    // of type application/x-www-form-urlencoded
};

// Returns what is asked for the place's bucket: of AWS GetFederationToken, which needs the key of a
// user, of other servers AssumeRole, which MinIO and Ceph have. `lasts`: 15 minutes to 12 hours.
absl::StatusOr<SessionRequest> SessionRequestFor(const spec::DataPlace& place, bool write,
                                                 absl::Duration lasts);

// Reads the answer, an XML document. FailedPrecondition, with the store's own words, if it is none
// with keys. The values come from the store and are taken as they are, up to 8 KiB each.
absl::StatusOr<Credentials> SessionFrom(absl::string_view xml);

}  // namespace tutti::storage
