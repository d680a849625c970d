#include "platform/backup/home_mounts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/machine/mounts.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

// Goes by the device before Linux 5.8, which does not say: a subvolume has one, too.
bool IsMountPoint(const fs::path& folder) {
  struct statx found = {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &found) == 0 &&
      (found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    return (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }
  struct stat own = {}, above = {};
  return ::stat(folder.c_str(), &own) == 0 && ::stat(folder.parent_path().c_str(), &above) == 0 &&
         own.st_dev != above.st_dev;
}

}  // namespace

absl::Status CheckNoMounts(const fs::path& home) {
  if (IsMountPoint(home)) {
    return absl::FailedPreconditionError(absl::StrCat(
        home.string(), " is a mount point, and cannot be set aside: restore into another folder ",
        "(tutti --home FOLDER restore FILE)"));
  }
  const std::string below = home.native() + "/";
  for (const base::Mount& mount : base::ReadMounts()) {
    if (!absl::StartsWith(mount.point, below)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        mount.point, ", a part of ", home.string(),
        ", is a mount point: set aside it would go with the old folder, and after the next boot ",
        "stand in the new one, with the files of other jobs: unmount it and take its line, if ",
        "it has one, out of /etc/fstab, or restore into another folder (tutti --home FOLDER "
        "restore FILE)"));
  }
  return absl::OkStatus();
}

}  // namespace tutti::backup
