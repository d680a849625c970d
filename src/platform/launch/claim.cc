#include "platform/launch/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/child_process.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/status.h"

namespace tutti::launch {

absl::StatusOr<Claim> ClaimAllocation(const NodeFolders& folders, const std::string& boot_id) {
  Claim claim;
  TUTTI_ASSIGN_OR_RETURN(claim.lock, base::Open(folders.lock(), O_RDWR | O_CREAT));
  if (::flock(claim.lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another launcher is at work in ", folders.root.string()));
  }
  TUTTI_ASSIGN_OR_RETURN(const uint64_t start_time, base::ProcessStartTime(::getpid()));
  const std::string owner =
      absl::StrCat("{\"pid\": ", ::getpid(), ", \"start_time\": ", start_time, "}\n");
  if (::ftruncate(claim.lock.get(), 0) != 0) return base::ErrnoStatus("truncate lock");
  TUTTI_RETURN_IF_ERROR(base::WriteAll(claim.lock.get(), owner, folders.lock().string()));

  const auto marker = base::Open(folders.started(), O_WRONLY | O_CREAT | O_EXCL);
  // After another start of the machine the marker may be lost with what was not yet on the disk,
  // but the launcher that made it is, too.
  claim.first = marker.ok() && (boot_id.empty() || boot_id == base::BootId());
  if (!marker.ok() && !absl::IsAlreadyExists(marker.status())) return marker.status();
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
