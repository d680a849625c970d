#include "platform/launch/staging/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine/pattern_walk.h"
#include "base/status.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

constexpr size_t kAtOnce = size_t{1} << 20;

// Has the file systems copy as far as they can, and copies the rest in pieces. An error of the
// target names both: it is the target's disk that is full.
absl::Status CopyBytes(const base::UniqueFd& in, const base::UniqueFd& out,
                       const std::string& what) {
  while (true) {
    const ssize_t n = ::copy_file_range(in.get(), nullptr, out.get(), nullptr, 64 * kAtOnce, 0);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && (errno == ENOSPC || errno == EDQUOT)) return base::ErrnoStatus(what);
    break;
  }
  std::string piece(kAtOnce, '\0');
  while (true) {
    const ssize_t n = ::read(in.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(what);
    if (n == 0) return absl::OkStatus();
    const absl::string_view bytes(piece.data(), static_cast<size_t>(n));
    TUTTI_RETURN_IF_ERROR(base::WriteAll(out.get(), bytes, what));
  }
}

// Copies a regular file, with its permissions, over one that is there. std::filesystem calls a full
// disk an input/output error.
absl::Status CopyFile(const fs::path& from, const fs::path& to) {
  const std::string what = absl::StrCat("copy ", from.string());
  const auto in = base::Open(from, O_RDONLY);
  TUTTI_RETURN_IF_ERROR(in.status());
  struct stat status = {};
  if (::fstat(in->get(), &status) != 0) return base::ErrnoStatus(what);
  const std::string both = absl::StrCat(what, " to ", to.string());
  const base::UniqueFd out(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, status.st_mode | S_IWUSR));
  if (!out.valid()) return base::ErrnoStatus(both);
  TUTTI_RETURN_IF_ERROR(CopyBytes(*in, out, both));
  return ::fchmod(out.get(), status.st_mode & 07777) == 0 ? absl::OkStatus()
                                                          : base::ErrnoStatus(both);
}

// Copies a file; the copy is its job's own, also one of what is kept read-only.
absl::Status CopyOwn(const fs::path& from, const fs::path& to, mode_t mode) {
  TUTTI_RETURN_IF_ERROR(CopyFile(from, to));
  std::error_code error;
  if ((mode & S_IWUSR) == 0) {
    fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
  }
  return error ? base::ErrnoStatus(absl::StrCat("copy to ", to.string()), error.value())
               : absl::OkStatus();
}

absl::Status CopyEntry(const base::TreeEntry& entry, const fs::path& to) {
  if (entry.is_folder()) return base::MakeDirectories(to);
  if (entry.error == 0) return CopyOwn(entry.path, to, entry.status.st_mode);
  if (entry.error == ELOOP && S_ISDIR(entry.status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(entry.path.string(),
                     " links to a folder that it lies in, so that a copy has no end: remove the "
                     "link, or take mode: ro_mount"));
  }
  return base::ErrnoStatus(absl::StrCat("copy ", entry.path.string()), entry.error);
}

}  // namespace

absl::Status Copy(const fs::path& from, const fs::path& to, const std::atomic<bool>& cancelled) {
  const auto goes_on = [&] {
    return cancelled ? absl::CancelledError("stopped while inputs were copied") : absl::OkStatus();
  };
  TUTTI_RETURN_IF_ERROR(goes_on());
  struct stat status = {};
  const std::string what = absl::StrCat("copy ", from.string());
  if (::stat(from.c_str(), &status) != 0) return base::ErrnoStatus(what);
  if (S_ISREG(status.st_mode)) return CopyOwn(from, to, status.st_mode);
  if (!S_ISDIR(status.st_mode)) return base::ErrnoStatus(what, EOPNOTSUPP);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  return base::WalkTree(from, /*recursive=*/true, [&](const base::TreeEntry& entry) {
    TUTTI_RETURN_IF_ERROR(goes_on());
    return CopyEntry(entry, to / entry.path.lexically_relative(from));
  });
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
      const absl::Status copied = CopyFile(entry->path(), target);
      if (!copied.ok() && !absl::IsNotFound(copied)) return copied;
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
