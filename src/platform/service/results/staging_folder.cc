#include "platform/service/results/staging_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/folder.h"
#include "base/status.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = ".incoming-";
constexpr size_t kBytesOfAName = 8;

// Area is what a rename does not leave: a mount, and within it a part with a device number of its
// own, as Btrfs has them.
struct Area {
  uint64_t mount = 0;
  uint32_t major = 0, minor = 0;
  bool operator==(const Area&) const = default;
};

absl::StatusOr<Area> AreaOf(const fs::path& folder) {
  struct statx status = {};
  if (::statx(AT_FDCWD, folder.c_str(), 0, STATX_MNT_ID, &status) != 0) {
    return base::ErrnoStatus(absl::StrCat("statx ", folder.native()));
  }
  return Area{(status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0, status.stx_dev_major,
              status.stx_dev_minor};
}

}  // namespace

struct StagingFolder::Tops {
  absl::Mutex mutex;
  std::set<fs::path> seen ABSL_GUARDED_BY(mutex);
};

StagingFolder::StagingFolder(fs::path parent)
    : parent_(std::move(parent)),
      path_(parent_ / absl::StrCat(kPrefix, base::RandomHex(kBytesOfAName))),
      tops_(std::make_shared<Tops>()) {}

absl::StatusOr<fs::path> StagingFolder::NewPathFor(const fs::path& folder) const {
  const std::string name = base::RandomHex(kBytesOfAName);
  TUTTI_ASSIGN_OR_RETURN(const Area there, AreaOf(folder));
  TUTTI_ASSIGN_OR_RETURN(const Area ours, AreaOf(parent_));
  if (there == ours) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path_));
    return path_ / name;
  }
  fs::path top = folder;
  while (top != parent_ && top.has_relative_path()) {
    TUTTI_ASSIGN_OR_RETURN(const Area above, AreaOf(top.parent_path()));
    if (above != there) break;
    top = top.parent_path();
  }
  RemoveEarlierAt(top);
  return top / absl::StrCat(path_.filename().native(), "-", name);
}

void StagingFolder::RemoveEarlierAt(const fs::path& top) const {
  {
    absl::MutexLock lock(&tops_->mutex);
    if (!tops_->seen.insert(top).second) return;
  }
  for (const std::string& name : base::NamesIn(top)) {
    const bool is_ours = absl::StartsWith(name, path_.filename().native());
    if (IsArriving(name) && !is_ours) base::RemoveTree(top / name).IgnoreError();
  }
}

void StagingFolder::RemoveEarlier(base::Janitor& janitor) const {
  for (const std::string& name : base::NamesIn(parent_)) {
    if (absl::StartsWith(name, kPrefix) && parent_ / name != path_) janitor.Remove(parent_ / name);
  }
}

bool IsArriving(absl::string_view name) {
  constexpr size_t kDigits = 2 * kBytesOfAName;
  return absl::ConsumePrefix(&name, kPrefix) && name.size() == 2 * kDigits + 1 &&
         name[kDigits] == '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c) || c == '-';
         });
}

absl::Status MoveIntoPlace(const fs::path& arrived, const fs::path& path) {
  if (std::rename(arrived.c_str(), path.c_str()) == 0) return absl::OkStatus();
  if (errno != EXDEV) return base::ErrnoStatus(absl::StrCat("rename to ", path.native()));
  return absl::InvalidArgumentError(absl::StrCat(
      path.native(), ": what has arrived in ", arrived.parent_path().native(),
      " cannot be renamed to it: they are in different mounts, or one is in a project quota of its "
      "own; take the mount or quota away from that folder"));
}

}  // namespace tutti::service
