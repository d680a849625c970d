// Lists what lies in a folder, which may be on a server.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tutti::base {

// Returns the names in a folder, in no order; none if it is not there or cannot be read.
std::vector<std::string> NamesIn(const std::filesystem::path& folder);

// Returns when a file or folder was last changed; nothing if it is not there, is a link or cannot
// be read. Opens it: an NFS client that knows it from before asks its server anew then.
std::optional<absl::Time> ChangedAt(const std::filesystem::path& path);

// Returns the path, or the nearest folder above it, that is there.
std::filesystem::path NearestThatIsThere(std::filesystem::path path);

}  // namespace tutti::base
