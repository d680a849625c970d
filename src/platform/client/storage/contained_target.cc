#include "platform/client/storage/contained_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOfOthers = S_IWGRP | S_IWOTH;

absl::StatusOr<base::UniqueFd> OpenFolder(int in, const fs::path& name, const fs::path& shown) {
  base::UniqueFd folder(
      ::openat(in, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.valid()) return folder;
  if (errno != ELOOP && errno != ENOTDIR) return base::ErrnoStatus(shown.string());
  return absl::FailedPreconditionError(
      absl::StrCat(shown.string(),
                   " is a link or a file, and must be a folder: nothing is written "
                   "to where a link leads"));
}

absl::Status MakeFolder(int in, const fs::path& name, mode_t mode, const fs::path& shown) {
  if (::mkdirat(in, name.c_str(), mode) == 0 || errno == EEXIST) return absl::OkStatus();
  return base::ErrnoStatus(shown.string());
}

}  // namespace

absl::StatusOr<ContainedTarget> ContainedTarget::Open(const fs::path& folder,
                                                      const std::string& stage) {
  fs::path shown = folder.root_path();
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd opened, OpenFolder(AT_FDCWD, shown, shown));
  for (const fs::path& part : folder.relative_path()) {
    if (part.empty()) continue;
    shown /= part;
    TUTTI_ASSIGN_OR_RETURN(opened, OpenFolder(opened.get(), part, shown));
  }
  const fs::path of_stage = folder / stage;
  TUTTI_RETURN_IF_ERROR(MakeFolder(opened.get(), stage, 0700, of_stage));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd own, OpenFolder(opened.get(), stage, of_stage));
  struct stat info = {};
  if (::fstat(own.get(), &info) != 0) return base::ErrnoStatus(of_stage.string());
  if (info.st_uid == ::geteuid() && (info.st_mode & kOfOthers) == 0) {
    return ContainedTarget(folder, std::move(opened), std::move(own));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(of_stage.string(), " is a folder to which others may write: remove it"));
}

fs::path ContainedTarget::stage() const {
  return absl::StrCat("/proc/", ::getpid(), "/fd/", stage_.get());
}

absl::Status ContainedTarget::Take(const fs::path& from, const fs::path& to) const {
  base::UniqueFd below;
  fs::path shown = path_;
  for (const fs::path& part : to.parent_path()) {
    shown /= part;
    if (part == "..") return absl::InvalidArgumentError(absl::StrCat(shown.string(), " leads out"));
    const int in = below.valid() ? below.get() : folder_.get();
    TUTTI_RETURN_IF_ERROR(MakeFolder(in, part, 0777, shown));
    TUTTI_ASSIGN_OR_RETURN(below, OpenFolder(in, part, shown));
  }
  const int in = below.valid() ? below.get() : folder_.get();
  if (::renameat(stage_.get(), from.c_str(), in, to.filename().c_str()) == 0) {
    return absl::OkStatus();
  }
  return base::ErrnoStatus(absl::StrCat("rename to ", (path_ / to).string()));
}

}  // namespace tutti::client
