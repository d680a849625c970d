#include "base/held_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/status.h"

namespace tutti::base {

absl::StatusOr<UniqueFd> HoldFolder(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  TUTTI_ASSIGN_OR_RETURN(UniqueFd fd, Open(path, O_RDWR | O_CREAT, 0600));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
    const std::string holder = absl::StrCat(::getpid(), " on ", HostName(), "\n");
    if (::ftruncate(fd.get(), 0) != 0) return ErrnoStatus(path.native());
    TUTTI_RETURN_IF_ERROR(WriteAll(fd.get(), holder, path.native()));
    return fd;
  }
  if (errno != EWOULDBLOCK) return ErrnoStatus(absl::StrCat("flock ", path.native()));
  const auto holder = ReadFile(path, 512);
  return absl::FailedPreconditionError(absl::StrCat(
      "another service (process ", holder.ok() ? absl::StripAsciiWhitespace(*holder) : "?",
      ") holds ", folder.native(), ": stop it first, or give this one another folder"));
}

}  // namespace tutti::base
