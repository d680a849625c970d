// Tells which inputs lie behind http or https, and words the error for one that cannot be fetched.
// Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::spec {

bool IsRemote(const Input& input);

// Returns the message for an input that cannot be fetched because of `status`: it names the address
// without its secret parts, and the command that serves the input from a local copy.
std::string RemoteInputFault(const Input& input, const absl::Status& status);

}  // namespace tutti::spec
