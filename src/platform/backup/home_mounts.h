// Whether a service's folder can be moved as a whole.
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace tutti::backup {

// FailedPrecondition, with what to do, if something is mounted at `home` or below it: what is
// mounted at a folder cannot be moved, and what is mounted below one goes with it, and after the
// next boot stands below the folder that has its name by then. A subvolume that is not mounted by
// itself (btrfs) is a folder as any. `home`: absolute, without links.
absl::Status CheckNoMounts(const std::filesystem::path& home);

}  // namespace tutti::backup
