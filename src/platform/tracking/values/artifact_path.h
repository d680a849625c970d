// Checks the paths by which clients name the files of runs.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::tracking {

// Returns the path as it is below a root: InvalidArgument for one that is absolute, or has an
// empty, "." or ".." part, or a NUL. "" is the root.
absl::StatusOr<std::filesystem::path> ArtifactPath(absl::string_view path);

}  // namespace tutti::tracking
