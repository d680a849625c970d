// Inputs that lie behind http or https. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "spec/types/job.h"

namespace tutti::spec {

bool IsRemote(const Input& input);

// That it cannot be had, for `status`: its address without what is secret of it, and the command
// that serves it from a copy.
std::string RemoteInputFault(const Input& input, const absl::Status& status);

}  // namespace tutti::spec
