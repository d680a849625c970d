// Keeps the signatures of addresses ("https://HOST/FILE?sv=…&sig=…") out of what is kept of a job.
// In its file and its inputs an address names its signature instead, by a hash of "https://HOST"
// and it:
//
//   https://HOST/FILE?tutti-signature=5ac81f20773fa2f54b9f3e8c
//
// and the signature is a secret of the service. So a job's file can be shown, kept and submitted
// again. With another host's address the hash is not that of the signature, which is refused: who
// knows a hash alone cannot have the signature sent elsewhere. Pure functions; thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

// The signatures, each with its "sv=" and all that stands behind "?", by their secrets' names.
using Signatures = std::map<std::string, std::string>;

// Returns the secret of an address that names its signature; "" for any other address.
std::string SecretOfAddress(absl::string_view address);

// Returns the address with the name of its signature, which is added to `signatures`; an address
// that has none, as it is.
std::string WithoutSignature(absl::string_view address, Signatures& signatures);

// Does the same for each address by http or https that is a "path" in the text of a job file, but
// where it is written with escapes.
std::string FileWithoutSignatures(absl::string_view text, Signatures& signatures);

// Returns the address with its signature; one that names none, as it is. NotFound, with what to do,
// if the signature is not among `signatures`, which may have other secrets too; FailedPrecondition
// if it is one of another server, or was kept by a tutti that did not note the server.
absl::StatusOr<std::string> WithSignature(absl::string_view address, const Signatures& signatures);

}  // namespace tutti::spec
