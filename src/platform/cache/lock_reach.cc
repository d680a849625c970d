#include "platform/cache/lock_reach.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tutti::cache {
namespace {

constexpr char kMounts[] = "/proc/self/mountinfo";
constexpr size_t kMostBytes = 16 << 20;
constexpr size_t kDevice = 2;  // the field of a line

bool KeepsLocksLocal(absl::string_view file_system, absl::string_view option) {
  if (absl::StartsWith(file_system, "nfs")) {
    return option == "nolock" || option == "local_lock=flock" || option == "local_lock=all";
  }
  return file_system == "lustre" && option == "localflock";
}

}  // namespace

// "36 35 0:51 /exports /mnt rw,noatime shared:2 - nfs4 server:/exports rw,vers=4.2,local_lock=none"
std::string LocalLockOption(absl::string_view mountinfo, absl::string_view device) {
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() <= kDevice || fields[kDevice] != device || fields.end() - dash < 4) continue;
    for (const absl::string_view option : absl::StrSplit(dash[3], ',')) {
      if (KeepsLocksLocal(dash[1], option)) return std::string(option);
    }
  }
  return "";
}

absl::Status CheckLockReach(const std::filesystem::path& folder) {
  struct stat info = {};
  const auto mounts = base::ReadFile(kMounts, kMostBytes);
  if (::stat(folder.c_str(), &info) != 0 || !mounts.ok()) return absl::OkStatus();
  const std::string option =
      LocalLockOption(*mounts, absl::StrCat(major(info.st_dev), ":", minor(info.st_dev)));
  if (option.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder.native(), " is mounted with ", option,
                   ", so that nobody sees what jobs of other nodes read there, and nothing is "
                   "removed to make room: mount it without that option"));
}

}  // namespace tutti::cache
