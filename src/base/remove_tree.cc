#include "base/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tutti::base {
namespace {

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

class Removal {
 public:
  explicit Removal(const std::atomic<bool>& stop) : stop_(stop) {}

  absl::Status Run(const std::filesystem::path& path) {
    struct stat info = {};
    if (::lstat(path.c_str(), &info) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) Note(path);
      return first_;
    }
    device_ = info.st_dev;
    RemoveEntry(AT_FDCWD, path.c_str(), path);
    return first_;
  }

 private:
  void Note(const std::filesystem::path& path) {
    first_.Update(ErrnoStatus(absl::StrCat("remove ", path.native())));
  }

  // `name` in the folder `at`.
  void RemoveEntry(int at, const char* name, const std::filesystem::path& path) {
    if (::unlinkat(at, name, 0) == 0 || errno == ENOENT) return;
    struct stat info = {};
    const int error = errno;
    if (::fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return Note(path);
    if (S_ISDIR(info.st_mode)) return RemoveFolder(at, name, info, path);
    errno = error;
    Note(path);
  }

  void RemoveFolder(int at, const char* name, const struct stat& info,
                    const std::filesystem::path& path) {
    if (info.st_dev != device_) {
      first_.Update(absl::FailedPreconditionError(
          absl::StrCat("remove ", path.native(), ": something is mounted there: umount it")));
      return;
    }
    if ((info.st_mode & S_IRWXU) != S_IRWXU) ::fchmodat(at, name, S_IRWXU, 0);
    RemoveContent(at, name, path);
    if (stop_) {
      first_.Update(absl::CancelledError(absl::StrCat("remove ", path.native())));
      return;
    }
    if (::unlinkat(at, name, AT_REMOVEDIR) != 0 && errno != ENOENT) Note(path);
  }

  void RemoveContent(int at, const char* name, const std::filesystem::path& path) {
    UniqueFd fd(::openat(at, name, kOpenFolder));
    if (!fd.valid()) return Note(path);
    const Folder folder(::fdopendir(fd.get()));
    if (folder == nullptr) return Note(path);
    const int here = fd.release();
    while (!stop_) {
      errno = 0;
      const dirent* const entry = ::readdir(folder.get());
      if (entry == nullptr) {
        if (errno != 0) Note(path);
        return;
      }
      const bool is_self = ::strcmp(entry->d_name, ".") == 0 || ::strcmp(entry->d_name, "..") == 0;
      if (!is_self) RemoveEntry(here, entry->d_name, path / entry->d_name);
    }
  }

  const std::atomic<bool>& stop_;
  dev_t device_ = 0;
  absl::Status first_;
};

}  // namespace

absl::Status RemoveTree(const std::filesystem::path& path, const std::atomic<bool>& stop) {
  return Removal(stop).Run(path);
}

}  // namespace tutti::base
