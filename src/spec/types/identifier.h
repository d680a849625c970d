// Checks the names of jobs, steps, inputs, outputs and secrets. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns whether it is letters, digits and "_", not beginning with a digit, at most 128
// characters: such names become folders and variables.
bool IsIdentifier(absl::string_view name);

// Returns whether it is letters, digits, "-" and "_", beginning with a letter or a digit, at most
// 128 characters.
bool IsJobName(absl::string_view name);

// Returns whether it is written as a job's name is.
bool IsSecretName(absl::string_view name);

// Returns the name of the secret that has the credentials of a datastore, "datastore.NAME". It is
// no name for a secret of a user's, so that no job can be given it.
std::string SecretOfDatastore(absl::string_view name);
// Returns whether it is such a name.
bool IsDatastoreSecret(absl::string_view name);

// Returns the name of the secret that is the signature of addresses, "signature.HASH"; likewise.
std::string SecretOfSignature(absl::string_view hash);
// Returns whether it is such a name.
bool IsSignatureSecret(absl::string_view name);
// Tells a user what to do where such a secret is not there.
inline constexpr absl::string_view kHowToSignAnew =
    "write the address with its signature again, or make a datastore with the signature as its "
    "sas_token (tutti datastore create --file FILE)";

}  // namespace tutti::spec
