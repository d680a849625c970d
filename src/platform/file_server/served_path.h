// Decides which folders may be served. Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"

namespace tutti::file_server {

// Returns where `folder` is, free of links: what is served must be a folder, and not have the
// service's folder `home`, with its tokens and secrets, in it or around it. InvalidArgument says
// what it is not, and what to do.
absl::StatusOr<std::filesystem::path> ServedPath(const std::filesystem::path& folder,
                                                 const std::filesystem::path& home);

}  // namespace tutti::file_server
