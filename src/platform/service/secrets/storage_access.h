// StorageAccess lets a user of the service reach a datastore from the user's own machine, without
// the datastore's credentials: it gives others, made of these, that may do less and end by
// themselves, and addresses of single objects that anybody can read. Thread-safe; its calls block
// while a store's token service is asked.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/service/secrets/secrets.h"
#include "platform/storage/storage_request.h"
#include "spec/types/data_place.h"

namespace tutti::service {

// How long what is given may last, and lasts if nobody says.
inline constexpr absl::Duration kShortestGrant = absl::Minutes(15);
inline constexpr absl::Duration kShortestSignature = absl::Minutes(1);
inline constexpr absl::Duration kLongestGrant = absl::Hours(12);
inline constexpr absl::Duration kLongestSignature = absl::Hours(7 * 24);
inline constexpr absl::Duration kUsualAccess = absl::Hours(1);

struct StorageQuestion {
  std::string address;  // as a job's input has it; to sign also "job:NAME/PATH"
  bool write = false;
  absl::Duration lasts = kUsualAccess;
};

// For one container.
struct StorageGrant {
  spec::DataPlace place;  // that of the address
  storage::Credentials credentials;
  absl::Time expires;
};

struct SignedAddress {
  std::string url;  // of a job's file without the server, which begins with "/"
  absl::Time expires;
};

class StorageAccess {
 public:
  StorageAccess(SharedState& state, const Secrets& secrets) : state_(state), secrets_(secrets) {}

  // Do what the functions of Service of these names do.
  absl::StatusOr<StorageGrant> GrantStorage(const StorageQuestion& question)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<SignedAddress> SignStorage(const StorageQuestion& question)
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  struct Opened {
    spec::DataPlace place;
    storage::Credentials credentials;
  };
  // Returns where the address lies and what opens it.
  absl::StatusOr<Opened> Open(const std::string& address) const;
  // Signs "NAME/PATH", whether the job has that file or not.
  absl::StatusOr<SignedAddress> SignFile(absl::string_view file,
                                         const StorageQuestion& question) const;

  SharedState& state_;
  const Secrets& secrets_;
};

// Returns the answer of the REST interface: {"place", "credentials", "expires"}. It has the
// credentials: for the user who has asked alone.
std::string GrantJson(const StorageGrant& grant);

}  // namespace tutti::service
