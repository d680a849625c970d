#include "base/disk_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"

namespace tutti::base {
namespace {

constexpr uint64_t kPart = 256 << 10;  // more than any one write of those that are entitled to it
constexpr uint64_t kWhole = 16 << 20;

uint64_t SizeOf(const std::filesystem::path& file) {
  struct stat info = {};
  return ::stat(file.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

bool Cut(const std::filesystem::path& file, uint64_t bytes) {
  return ::truncate(file.c_str(), static_cast<off_t>(bytes)) == 0;
}

}  // namespace

uint64_t DiskReserve::bytes() const { return SizeOf(file_); }

bool DiskReserve::GiveUp() {
  absl::MutexLock lock(&mutex_);
  const uint64_t held = SizeOf(file_);
  return held > 0 && Cut(file_, held - std::min(held, kPart));
}

bool DiskReserve::Restore(uint64_t spare) {
  absl::MutexLock lock(&mutex_);
  struct statvfs disk = {};
  if (::statvfs(file_.parent_path().c_str(), &disk) != 0) return false;
  const uint64_t total = disk.f_blocks * disk.f_frsize, free = disk.f_bavail * disk.f_frsize;
  const uint64_t whole = std::min(kWhole, total / 16 / kPart * kPart), held = SizeOf(file_);
  if (held >= whole) return true;
  if (free < whole - held + spare) return false;
  const auto fd = Open(file_, O_WRONLY | O_CREAT, 0600);
  if (!fd.ok()) return false;
  // Blocks, not a hole; where the file system has none ahead the C library writes to each.
  if (::posix_fallocate(fd->get(), 0, static_cast<off_t>(whole)) == 0) return true;
  Cut(file_, held);  // a part of it may be there
  return false;
}

}  // namespace tutti::base
