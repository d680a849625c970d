// Finds what opens a store for the user of this machine: the user's own credentials, from the
// variables that the stores' own tools read, or the service's for a limited time. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/client/connection/connection.h"
#include "platform/client/storage/storage_address.h"
#include "platform/storage/storage_request.h"

namespace tutti::client {

// Returns the value of a variable of the environment; "" if it is not set.
using Variables = std::function<std::string(const char* name)>;

// Returns what the variables have for such a store: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN; GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY; AZURE_STORAGE_SAS_TOKEN,
// AZURE_STORAGE_KEY, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET. Nothing if they
// have none.
std::optional<storage::Credentials> CredentialsOfVariables(spec::StoreKind kind,
                                                           const Variables& variables);

struct FoundCredentials {
  storage::Credentials credentials;
  absl::Time expires = absl::InfiniteFuture();
};

// An address's own signature comes first. A datastore with credentials is asked of the service, for
// an hour, and if that gives none, the variables are looked at; for another store the variables,
// and without them it is read as public data. Errors are the service's.
absl::StatusOr<FoundCredentials> FindCredentials(const Connect& connect,
                                                 const StorageAddress& address, bool write,
                                                 const Variables& variables);

}  // namespace tutti::client
