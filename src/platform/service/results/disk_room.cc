#include "platform/service/results/disk_room.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/binary_size.h"

namespace tutti::service {
namespace {

constexpr uint64_t kLeastFiles = 256;
constexpr absl::Duration kBetweenProbes = absl::Seconds(1);
constexpr size_t kProbeBytes = 1 << 20;
constexpr char kMend[] = "; delete files, or jobs that have ended, or see `tutti prune --dry-run`";

}  // namespace

uint64_t LeastRoom(uint64_t bytes_of_disk) {
  return std::clamp<uint64_t>(bytes_of_disk / 64, 4 << 20, 64 << 20);
}

DiskRoom RoomOf(const std::filesystem::path& directory) {
  struct statvfs space = {};
  if (::statvfs(directory.c_str(), &space) != 0) return {};
  const uint64_t available = uint64_t{space.f_bavail} * space.f_frsize;
  const uint64_t disk = uint64_t{space.f_blocks} * space.f_frsize;
  DiskRoom room{.least = LeastRoom(disk), .available = available, .disk = disk};
  // Some file systems have no fixed number of files, and report 0.
  const bool lacks_files = space.f_files > 0 && space.f_favail < kLeastFiles;
  if (available >= room.least && !lacks_files) return room;
  room.status = absl::ResourceExhaustedError(absl::StrCat(
      "the service's disk is full: ",
      available < room.least ? absl::StrCat(available >> 20, " MiB free in ", directory.native(),
                                            ", and below ", base::BinarySize(room.least))
                             : absl::StrCat("room for ", space.f_favail, " more files in ",
                                            directory.native(), ", and below ", kLeastFiles),
      " it takes no job, code, output or result", kMend));
  return room;
}

absl::Status CheckRoom(const std::filesystem::path& directory, uint64_t bytes) {
  const DiskRoom room = RoomOf(directory);
  if (room.least > 0 && bytes > room.disk - std::min(room.least, room.disk)) {
    return absl::OutOfRangeError(
        absl::StrCat("a file of ", bytes >> 20, " MiB never fits on the service's disk, which has ",
                     room.disk >> 20, " MiB in all at ", directory.native()));
  }
  if (!room.status.ok() || bytes == 0 || room.least == 0) return room.status;
  if (room.available - room.least >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the service's disk has ", room.available >> 20, " MiB free in ", directory.native(),
      ", which is too little for a file of ", bytes >> 20, " MiB", kMend));
}

bool IsFullDisk(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && base::SpeaksOfAFullDisk(status.message());
}

DiskRoom DiskGauge::Look() {
  DiskRoom room = RoomOf(directory_);
  if (room.status.ok()) room.status = Refusal();
  return room;
}

absl::Status DiskGauge::Check(uint64_t bytes) {
  absl::Status room = CheckRoom(directory_, bytes);
  return room.ok() ? Refusal() : room;
}

void DiskGauge::NoteWrite(const absl::Status& status, uint64_t bytes) {
  if (!IsFullDisk(status)) return;
  if (bytes > kProbeBytes && Probe().ok()) return;  // it was more than is left, which others take
  absl::MutexLock lock(&mutex_);
  if (!refusal_.ok()) return;
  refusal_ = absl::ResourceExhaustedError(
      absl::StrCat("the service's disk is full: ", status.message(), " (a quota?)", kMend));
  probed_ = base::SteadyNow();
}

absl::Status DiskGauge::Refusal() {
  {
    absl::MutexLock lock(&mutex_);
    if (refusal_.ok() || base::SteadyNow() - probed_ < kBetweenProbes) return refusal_;
    probed_ = base::SteadyNow();
  }
  const bool has_room = Probe().ok();
  absl::MutexLock lock(&mutex_);
  if (has_room) refusal_ = absl::OkStatus();
  return refusal_;
}

absl::Status DiskGauge::Probe() const {
  const std::filesystem::path file = directory_ / absl::StrCat(".room-", base::RandomHex(4));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_EXCL, 0600));
  const absl::Status written =
      base::WriteAll(fd.get(), std::string(kProbeBytes, '\0'), file.native());
  ::unlink(file.c_str());
  return written;
}

}  // namespace tutti::service
