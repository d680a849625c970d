// Names the secrets that have the logins of registries of images. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns the name of the secret with a user name and password for a registry, "registry.HOST" or
// "registry.HOST:PORT", which a user sets. It is no name that a job can be given (IsSecretName).
std::string SecretOfRegistry(absl::string_view host);
// Returns the host, with its port, of such a name; "" if it is none.
std::string RegistryOfSecret(absl::string_view name);

}  // namespace tutti::spec
