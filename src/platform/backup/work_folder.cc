#include "platform/backup/work_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/held_folder.h"
#include "base/status.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

// Who holds a folder has its name there.
constexpr char kLock[] = "lock";

// A name that nothing has.
fs::path AsideOf(const fs::path& target, const std::string& time) {
  std::error_code error;
  fs::path aside = target.native() + ".aside-" + time;
  for (int i = 2; fs::exists(fs::symlink_status(aside, error)); ++i) {
    aside = absl::StrCat(target.native(), ".aside-", time, "-", i);
  }
  return aside;
}

absl::Status Rename(const fs::path& from, const fs::path& to, unsigned int flags = 0) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) {
    return absl::OkStatus();
  }
  return base::ErrnoStatus(absl::StrCat("move ", from.string(), " to ", to.string()));
}

absl::Status Empty(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename() == kLock) continue;
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(entry.path()));
  }
  return error ? base::ErrnoStatus(folder.string(), error.value()) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkFolder> WorkFolder::Open(fs::path path, const std::string& busy) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::ErrnoStatus(absl::StrCat("mkdir ", path.string()));
  }
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return base::ErrnoStatus(path.string());
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    return absl::FailedPreconditionError(absl::StrCat(path.string(), " is another's: remove it"));
  }
  if (::chmod(path.c_str(), 0700) != 0) return base::ErrnoStatus(path.string());
  auto lock = base::HoldFolder(path);
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(absl::StrCat(busy, ": wait until it has ended"));
  }
  TUTTI_RETURN_IF_ERROR(lock.status());
  TUTTI_RETURN_IF_ERROR(Empty(path));
  return WorkFolder(std::move(path), *std::move(lock));
}

WorkFolder::WorkFolder(WorkFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

WorkFolder::~WorkFolder() {
  if (!path_.empty()) base::RemoveTree(path_).IgnoreError();
}

absl::Status WorkFolder::MoveTo(const fs::path& target) {
  if (std::rename(path_.c_str(), target.c_str()) != 0) {
    return base::ErrnoStatus(absl::StrCat("make ", target.string()));
  }
  path_.clear();
  return base::SyncDirectory(target.parent_path());
}

// The new folder takes the name first that the old one is to have, so that one exchange puts both
// in their places: under the name of a WorkFolder the old one would be emptied by the next. From
// then on what is removed with this object is the new one alone, and only where it is known to be
// it.
absl::StatusOr<fs::path> WorkFolder::TakePlaceOf(const fs::path& target, const std::string& time,
                                                 const std::function<void()>& on_step) {
  const auto move = [&](const fs::path& from, const fs::path& to, unsigned int flags = 0) {
    if (on_step) on_step();
    return Rename(from, to, flags);
  };
  fs::path aside = AsideOf(target, time);
  TUTTI_RETURN_IF_ERROR(move(path_, aside));
  const fs::path own = std::exchange(path_, {}), fresh = aside;
  absl::Status moved = move(fresh, target, RENAME_EXCHANGE);
  if (absl::IsInvalidArgument(moved) || absl::IsUnimplemented(moved)) {  // as of NFS
    aside = AsideOf(target, time);
    moved = move(target, aside);
    if (moved.ok()) moved = move(fresh, target);
    if (!moved.ok()) Rename(aside, target).IgnoreError();
  }
  if (!moved.ok()) {
    if (Rename(fresh, own).ok()) path_ = own;
    return moved;
  }
  TUTTI_RETURN_IF_ERROR(base::Annotate(
      base::SyncDirectory(target.parent_path()),
      absl::StrCat(target.string(), " is restored, and what was there is now ", aside.string(),
                   ", but a loss of power may undo that (sync writes it to the disk)")));
  return aside;
}

}  // namespace tutti::backup
