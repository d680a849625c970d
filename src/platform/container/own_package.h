// Finds tutti's own Python package, which has Horovod's interface: a wheel that is built with the
// program, in share/tutti beside the folder of the program. Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "spec/types/job.h"

namespace tutti::container {

// Returns the environment with the wheel's path for each requirement of Horovod. NotFound, with the
// line that asks for it, if there is no wheel. `program`: the running one, other than in tests.
absl::StatusOr<spec::Environment> WithOwnPackage(
    spec::Environment environment,
    const std::filesystem::path& program = std::filesystem::path("/proc/self/exe"));

}  // namespace tutti::container
