#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/remove_tree.h"
#include "base/status.h"

namespace tutti::base {
namespace fs = std::filesystem;

absl::Status Shorten(int fd, int64_t size, absl::string_view name) {
  struct stat info;
  if (::fstat(fd, &info) == 0 && info.st_size <= size) return absl::OkStatus();
  return ::ftruncate(fd, static_cast<off_t>(size)) == 0
             ? absl::OkStatus()
             : ErrnoStatus(absl::StrCat("truncate ", name));
}

absl::StatusOr<UniqueFd> Open(const fs::path& path, int flags, int mode) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd.valid()) return ErrnoStatus(absl::StrCat("open ", path.string()));
  return fd;
}

absl::StatusOr<std::string> ReadFile(const fs::path& path, uint64_t max_bytes) {
  TUTTI_ASSIGN_OR_RETURN(UniqueFd fd, Open(path, O_RDONLY));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(absl::StrCat("stat ", path.string()));
  if (S_ISDIR(info.st_mode)) return ErrnoStatus(absl::StrCat("read ", path.string()), EISDIR);
  std::string content;
  content.reserve(info.st_size > 0 ? static_cast<size_t>(info.st_size) : 0);
  char block[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrCat("read ", path.string()));
    if (n == 0) return content;
    content.append(block, static_cast<size_t>(n));
    if (content.size() > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path.string(), ": larger than ", max_bytes, " bytes"));
    }
  }
}

absl::Status WriteAll(int fd, absl::string_view content, absl::string_view name) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrCat("write ", name));
    content.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status AppendWhole(int fd, absl::string_view content, absl::string_view name) {
  const off_t before = ::lseek(fd, 0, SEEK_END);
  absl::Status written = WriteAll(fd, content, name);
  if (!written.ok() && before >= 0) Shorten(fd, before, name).IgnoreError();
  return written;
}

namespace {

absl::Status WriteAndRename(const fs::path& path, absl::string_view content, int mode, bool sync) {
  const fs::path temporary = absl::StrCat(path.string(), ".tmp.", ::getpid(), ".", ::gettid());
  // One that is there is of a process that was killed, or, in a folder that is everybody's, was put
  // there by somebody who wants to read what is written: it is not written to.
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL;
  absl::StatusOr<UniqueFd> fd = Open(temporary, kNew, mode);
  if (absl::IsAlreadyExists(fd.status()) && ::unlink(temporary.c_str()) == 0) {
    fd = Open(temporary, kNew, mode);
  }
  TUTTI_RETURN_IF_ERROR(fd.status());
  absl::Cleanup remove = [&] { ::unlink(temporary.c_str()); };
  TUTTI_RETURN_IF_ERROR(WriteAll(fd->get(), content, path.string()));
  if (sync && ::fsync(fd->get()) != 0) return ErrnoStatus(absl::StrCat("fsync ", path.string()));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(absl::StrCat("rename to ", path.string()));
  }
  std::move(remove).Cancel();
  return absl::OkStatus();
}

// Its blocks stay its own: they are needed on a full disk.
absl::Status OverwriteInPlace(const fs::path& path, absl::string_view content) {
  TUTTI_ASSIGN_OR_RETURN(const UniqueFd fd, Open(path, O_WRONLY));
  TUTTI_RETURN_IF_ERROR(WriteAll(fd.get(), content, path.string()));
  TUTTI_RETURN_IF_ERROR(Shorten(fd.get(), static_cast<int64_t>(content.size()), path.string()));
  if (::fsync(fd.get()) != 0) return ErrnoStatus(absl::StrCat("fsync ", path.string()));
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFileAtomic(const fs::path& path, absl::string_view content, int mode) {
  TUTTI_RETURN_IF_ERROR(WriteAndRename(path, content, mode, /*sync=*/true));
  return SyncDirectory(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

absl::Status UpdateFile(const fs::path& path, absl::string_view content, int mode) {
  const auto before = ReadFile(path);
  if (before.ok() && *before == content) return absl::OkStatus();
  const absl::Status written = WriteFileAtomic(path, content, mode);
  if (!before.ok() || !absl::IsResourceExhausted(written)) return written;
  return OverwriteInPlace(path, content);
}

absl::Status ReplaceFile(const fs::path& path, absl::string_view content, int mode) {
  return WriteAndRename(path, content, mode, /*sync=*/false);
}

absl::Status ReplaceOrOverwrite(const fs::path& path, absl::string_view content, int mode) {
  constexpr int64_t kBlock = 4096;
  const absl::Status replaced = ReplaceFile(path, content, mode);
  if (!absl::IsResourceExhausted(replaced)) return replaced;
  const auto fd = Open(path, O_WRONLY);
  struct stat info = {};
  if (!fd.ok() || ::fstat(fd->get(), &info) != 0) return replaced;
  const auto size = static_cast<int64_t>(content.size());
  if ((size + kBlock - 1) / kBlock > (info.st_size + kBlock - 1) / kBlock) return replaced;
  TUTTI_RETURN_IF_ERROR(WriteAll(fd->get(), content, path.string()));
  return Shorten(fd->get(), size, path.string());
}

bool IsPythonEnvironment(const std::filesystem::path& folder) {
  std::error_code error;
  return std::filesystem::is_regular_file(folder / "pyvenv.cfg", error) ||
         std::filesystem::is_directory(folder / "conda-meta", error);
}

// Not by std::filesystem::create_directories, which takes a parent that it may not look at for one
// that is there: its error is of what comes after it.
absl::Status MakeDirectories(const fs::path& path) {
  const auto is_folder = [&path] {
    struct stat found;
    return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  };
  if (is_folder() || ::mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
  int error = errno;
  const fs::path parent = path.parent_path();
  if (error == ENOENT && !parent.empty() && parent != path) {
    TUTTI_RETURN_IF_ERROR(MakeDirectories(parent));
    if (::mkdir(path.c_str(), 0777) == 0) return absl::OkStatus();
    error = errno;
  }
  if (error == EEXIST && is_folder()) return absl::OkStatus();
  return ErrnoStatus(absl::StrCat("mkdir ", path.string()), error == EEXIST ? ENOTDIR : error);
}

absl::Status SyncDirectory(const fs::path& path) {
  TUTTI_ASSIGN_OR_RETURN(UniqueFd fd, Open(path, O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return ErrnoStatus(absl::StrCat("fsync ", path.string()));
  return absl::OkStatus();
}

absl::Status RemoveTree(const fs::path& path) {
  static const std::atomic<bool> never = false;
  return RemoveTree(path, never);
}

void Touch(const std::filesystem::path& path) { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

absl::StatusOr<uint64_t> FreeBytes(const fs::path& path) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0)
    return ErrnoStatus(absl::StrCat("statvfs ", path.string()));
  return uint64_t{info.f_bavail} * info.f_frsize;
}

TemporaryDirectory::TemporaryDirectory(absl::string_view prefix) {
  const char* root = std::getenv("TMPDIR");
  std::string pattern = absl::StrCat(root != nullptr ? root : "/tmp", "/", prefix, ".XXXXXX");
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error(ErrnoStatus(absl::StrCat("mkdtemp ", pattern)).ToString());
  }
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() { RemoveTree(path_).IgnoreError(); }

}  // namespace tutti::base
