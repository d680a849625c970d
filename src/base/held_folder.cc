#include "base/held_folder.h"

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/status.h"
#include "base/waiting.h"

namespace tutti::base {

absl::StatusOr<UniqueFd> HoldFolder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  auto lock = LockFile(path, /*cancelled=*/true);  // does not wait
  if (absl::IsCancelled(lock.status())) {
    const auto holder = ReadFile(path, 512);
    return absl::FailedPreconditionError(absl::StrCat(
        "another service (process ", holder.ok() ? absl::StripAsciiWhitespace(*holder) : "?",
        ") holds ", folder.native(), ": stop it first, or give this one another folder"));
  }
  TUTTI_RETURN_IF_ERROR(lock.status());
  const std::string holder = absl::StrCat(::getpid(), " on ", HostName(), "\n");
  if (::ftruncate(lock->get(), 0) != 0) return ErrnoStatus(path.native());
  TUTTI_RETURN_IF_ERROR(WriteAll(lock->get(), holder, path.native()));
  return lock;
}

}  // namespace tutti::base
