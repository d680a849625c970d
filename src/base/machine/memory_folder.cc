#include "base/machine/memory_folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/remove_tree.h"
#include "base/status.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

constexpr char kMemory[] = "/dev/shm";

absl::Status CheckIsMemory(absl::string_view what) {
  struct statfs info = {};
  if (::statfs(kMemory, &info) == 0 && info.f_type == TMPFS_MAGIC) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(kMemory, " of this node is not in memory, and ",
                                                    what,
                                                    " lie nowhere else: mount a tmpfs there"));
}

// Returns the folder's descriptor, locked; an error if another process holds it.
absl::StatusOr<UniqueFd> Hold(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(UniqueFd fd, Open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0 || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return ErrnoStatus(folder.native());
  }
  if (info.st_uid != ::geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(folder.native(), " is another user's"));
  }
  return fd;
}

}  // namespace

fs::path MemoryFolder::PathOf(absl::string_view kind, absl::string_view name) {
  return fs::path(kMemory) / absl::StrCat("tutti-", kind, "-", ::geteuid(), "-", name);
}

void MemoryFolder::RemoveUnheld(absl::string_view kind) {
  const std::string prefix = PathOf(kind, "").filename().native();
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kMemory, error)) {
    if (absl::StartsWith(entry.path().filename().native(), prefix)) found.push_back(entry.path());
  }
  for (const fs::path& folder : found) {
    if (Hold(folder).ok()) RemoveTree(folder).IgnoreError();
  }
}

absl::StatusOr<MemoryFolder> MemoryFolder::Make(absl::string_view kind, absl::string_view name,
                                                absl::string_view what) {
  TUTTI_RETURN_IF_ERROR(CheckIsMemory(what));
  RemoveUnheld(kind);
  // Held before it has the name by which others find it.
  std::string fresh = PathOf(absl::StrCat("new-", kind), "XXXXXX").native();
  if (::mkdtemp(fresh.data()) == nullptr) return ErrnoStatus(fresh);
  absl::Cleanup remove = [&fresh] { RemoveTree(fresh).IgnoreError(); };
  TUTTI_ASSIGN_OR_RETURN(UniqueFd held, Hold(fresh));
  const fs::path path = PathOf(kind, name);
  TUTTI_RETURN_IF_ERROR(RemoveTree(path));
  if (::rename(fresh.c_str(), path.c_str()) != 0) return ErrnoStatus(path.native());
  std::move(remove).Cancel();
  return MemoryFolder(path, std::move(held));
}

}  // namespace tutti::base
