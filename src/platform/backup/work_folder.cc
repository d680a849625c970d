#include "platform/backup/work_folder.h"

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

}  // namespace tutti::backup
