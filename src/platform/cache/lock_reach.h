// Tells whether locks of flock(2) on files of a folder keep out the processes of other nodes that
// share it, as the cache's pins must. NFS and Lustre can be mounted so that they do not. Pure but
// for CheckLockReach; thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::cache {

// FailedPrecondition if locks of the folder are this node's alone: names the option of the mount
// that makes them so. OK too if the mount cannot be looked at.
absl::Status CheckLockReach(const std::filesystem::path& folder);

// Returns that option, or nothing, of the file system with that number ("0:51") in the content of
// /proc/self/mountinfo.
std::string LocalLockOption(absl::string_view mountinfo, absl::string_view device);

}  // namespace tutti::cache
