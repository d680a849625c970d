#include "platform/launch/node/claim.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/status.h"

namespace tutti::launch {

namespace {

// One that was made ahead gets its name, which costs less than to make one; else it is made.
absl::Status MakeMarker(const NodeFolders& folders) {
  if (::renameat2(AT_FDCWD, folders.marker().c_str(), AT_FDCWD, folders.started().c_str(),
                  RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  return base::Open(folders.started(), O_WRONLY | O_CREAT | O_EXCL).status();
}

}  // namespace

absl::StatusOr<base::UniqueFd> TakeLock(const NodeFolders& folders) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd lock, base::Open(folders.lock(), O_RDWR | O_CREAT));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return base::ErrnoStatus("lock " + folders.lock().string());
    return absl::FailedPreconditionError(
        absl::StrCat("another launcher is at work in ", folders.root.string()));
  }
  TUTTI_ASSIGN_OR_RETURN(const uint64_t start_time, base::ProcessStartTime(::getpid()));
  const std::string owner =
      absl::StrCat("{\"pid\": ", ::getpid(), ", \"start_time\": ", start_time, "}\n");
  if (::ftruncate(lock.get(), 0) != 0) return base::ErrnoStatus("truncate lock");
  TUTTI_RETURN_IF_ERROR(base::WriteAll(lock.get(), owner, folders.lock().string()));
  return lock;
}

bool IsLockOf(const NodeFolders& folders, const base::UniqueFd& lock) {
  struct stat held, named;
  return lock.valid() && ::fstat(lock.get(), &held) == 0 &&
         ::stat(folders.lock().c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

absl::StatusOr<Claim> ClaimAllocation(const NodeFolders& folders, const std::string& boot_id,
                                      base::UniqueFd lock) {
  Claim claim{.lock = std::move(lock)};
  if (!claim.lock.valid()) {
    TUTTI_ASSIGN_OR_RETURN(claim.lock, TakeLock(folders));
  }
  const absl::Status marked = MakeMarker(folders);
  // After another start of the machine the marker may be lost with what was not yet on the disk,
  // but the launcher that made it is, too.
  claim.first = marked.ok() && (boot_id.empty() || boot_id == base::BootId());
  if (!marked.ok() && !absl::IsAlreadyExists(marked)) return marked;
  return claim;
}

absl::Status MakeClaimDurable(const NodeFolders& folders) {
  // With the plan, if it lies here: a launcher that comes after a power failure reads it.
  if (const auto plan = base::Open(folders.plan(), O_RDONLY); plan.ok()) {
    if (::fsync(plan->get()) != 0) return base::ErrnoStatus("fsync plan.json");
  }
  return base::SyncDirectory(folders.root);
}

}  // namespace tutti::launch
