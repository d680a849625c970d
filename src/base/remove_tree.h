// Removes a folder with all that lies in it, which may take minutes or, on a server that is away,
// for ever.
#pragma once

#include <atomic>
#include <filesystem>

#include "absl/status/status.h"

namespace tutti::base {

// Removes `path` and all below it; OK if there is nothing of that name. Links are removed, not
// followed; folders that their owner may not write to (mode 0555) are made writable first. What is
// mounted below stays, which is an error. Goes on after an error and returns the first. Cancelled
// soon after `stop` is true, with a part removed.
absl::Status RemoveTree(const std::filesystem::path& path, const std::atomic<bool>& stop);

}  // namespace tutti::base
