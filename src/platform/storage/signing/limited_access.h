// Makes of a store's credentials what may be given away: the right to read, or to write too, in one
// container for a limited time, or the address of one object. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

struct AccessTerms {
  bool write = false;
  absl::Time now;
  absl::Duration lasts;
};

// Returns credentials of the place's container that end by themselves: of an account key a shared
// access signature. A shared access signature is one already and is returned as it is, and so is
// none. Nothing for an access key of S3: its token service has to be asked (session_request.h).
// FailedPrecondition, with what to do, for a service principal.
absl::StatusOr<std::optional<Credentials>> LimitedCredentials(const spec::DataPlace& place,
                                                              const Credentials& credentials,
                                                              const AccessTerms& terms);

// Returns an address by which anybody can read the place's object, or with `write` put it, until
// the time is over; of public data the address as it is. InvalidArgument for what is no object's
// place; FailedPrecondition, with what to do, for a service principal, and for a shared access
// signature of more than one blob, which anybody who has the address would have.
absl::StatusOr<std::string> SignedUrl(const spec::DataPlace& place, const Credentials& credentials,
                                      const AccessTerms& terms);

// Returns when what was made of the credentials ends: when the terms say, or a shared access
// signature, if that is sooner.
absl::Time EndOf(const Credentials& credentials, const AccessTerms& terms);

}  // namespace tutti::storage
