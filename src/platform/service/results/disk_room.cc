#include "platform/service/results/disk_room.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/text/binary_size.h"

namespace tutti::service {

uint64_t LeastRoom(uint64_t bytes_of_disk) {
  return std::clamp<uint64_t>(bytes_of_disk / 64, 4 << 20, 64 << 20);
}

DiskRoom RoomOf(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error) return {};
  const uint64_t least = LeastRoom(space.capacity);
  if (space.available >= least) return {absl::OkStatus(), least};
  return {absl::ResourceExhaustedError(absl::StrCat(
              "the service's disk is full: ", space.available >> 20, " MiB free in ",
              directory.native(), ", and below ", base::BinarySize(least),
              " it takes no job, code, output or result; delete files, or jobs that have ended, or "
              "see `tutti prune --dry-run`")),
          least};
}

absl::Status CheckRoom(const std::filesystem::path& directory) { return RoomOf(directory).status; }

}  // namespace tutti::service
