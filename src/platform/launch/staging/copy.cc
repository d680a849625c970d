#include "platform/launch/staging/copy.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

// A copy that follows links, one folder in another.
class FollowingCopy {
 public:
  explicit FollowingCopy(const std::atomic<bool>& cancelled) : cancelled_(cancelled) {}

  absl::Status Copy(const fs::path& from, const fs::path& to) {
    if (cancelled_) return absl::CancelledError("stopped while inputs were copied");
    struct stat status = {};
    if (::stat(from.c_str(), &status) != 0) {
      return base::ErrnoStatus(absl::StrCat("copy ", from.string()), errno);
    }
    if (S_ISDIR(status.st_mode)) return CopyFolder(from, to, {status.st_dev, status.st_ino});
    std::error_code error;
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    // A copy is its job's own, also one of what is kept read-only.
    if (!error && (status.st_mode & S_IWUSR) == 0) {
      fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
    }
    if (error) return base::ErrnoStatus(absl::StrCat("copy ", from.string()), error.value());
    return absl::OkStatus();
  }

 private:
  using Id = std::pair<dev_t, ino_t>;

  absl::Status CopyFolder(const fs::path& from, const fs::path& to, Id id) {
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(from.string(),
                       " links to a folder that it lies in, so that a copy has no "
                       "end: remove the link, or take mode: ro_mount"));
    }
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
    above_.push_back(id);
    std::error_code error;
    for (fs::directory_iterator entry(from, error), end; !error && entry != end;
         entry.increment(error)) {
      TUTTI_RETURN_IF_ERROR(Copy(entry->path(), to / entry->path().filename()));
    }
    above_.pop_back();
    if (error) return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
    return absl::OkStatus();
  }

  const std::atomic<bool>& cancelled_;
  std::vector<Id> above_;  // the folders that are being copied
};

}  // namespace

absl::Status Copy(const fs::path& from, const fs::path& to, const std::atomic<bool>& cancelled) {
  return FollowingCopy(cancelled).Copy(from, to);
}

absl::Status CopyAsItIs(const fs::path& from, const fs::path& to,
                        const std::atomic<bool>& cancelled) {
  if (cancelled) return absl::CancelledError("stopped while outputs were copied");
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path target = to / entry->path().filename();
    std::error_code failed;
    const fs::file_status status = entry->symlink_status(failed);
    if (fs::is_directory(status)) {
      TUTTI_RETURN_IF_ERROR(CopyAsItIs(entry->path(), target, cancelled));
    } else if (fs::is_symlink(status)) {
      fs::copy_symlink(entry->path(), target, failed);
    } else if (fs::is_regular_file(status)) {
      fs::copy_file(entry->path(), target, fs::copy_options::overwrite_existing, failed);
    }
    if (failed && failed != std::errc::no_such_file_or_directory) {
      return base::ErrnoStatus(absl::StrCat("copy ", entry->path().string()), failed.value());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
  }
  return absl::OkStatus();
}

}  // namespace tutti::launch
