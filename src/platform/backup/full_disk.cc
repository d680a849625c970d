#include "platform/backup/full_disk.h"

#include <sys/statvfs.h>

#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/binary_size.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kNothing = 256 << 10;  // what a disk that is full may still have, in blocks

// Full disks have several names: that of the system's error, SQLite's, and in some sandboxes that
// of a disk that is broken.
bool IsOfFullDisk(const absl::Status& failure, const fs::path& work) {
  if (absl::IsFailedPrecondition(failure) || absl::IsAlreadyExists(failure)) return false;
  const std::optional<uint64_t> free = FreeBytes(work.parent_path());
  if (free && *free < kNothing) return true;
  return absl::IsResourceExhausted(failure) && absl::StrContains(failure.message(), work.native());
}

}  // namespace

uint64_t BytesAt(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error))) {
    const uintmax_t bytes = fs::file_size(path, error);
    return error ? 0 : bytes;
  }
  uint64_t bytes = 0;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown) && !at->is_symlink(unknown)) bytes += at->file_size(unknown);
  }
  return bytes;
}

std::optional<uint64_t> FreeBytes(const fs::path& folder) {
  struct statvfs disk = {};
  if (::statvfs(folder.c_str(), &disk) != 0) return std::nullopt;
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

absl::Status ExplainFullDisk(const absl::Status& failure, const fs::path& work,
                             std::optional<uint64_t> free, absl::FunctionRef<uint64_t()> needed) {
  if (failure.ok() || !IsOfFullDisk(failure, work)) return failure;
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk is full: ", work.parent_path().string(), " had ",
                   base::BinarySize(free.value_or(0)), " free, and this backup takes up to ",
                   base::BinarySize(needed()), " there (", failure.message(),
                   "); free some space, or save it on another disk. Nothing of it is left"));
}

}  // namespace tutti::backup
