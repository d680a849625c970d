#include "platform/launch/staging/staged_bytes.h"

#include <sys/statvfs.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

constexpr uint64_t kMuch = 64 << 20;  // of a disk of unknown size, as one with a quota is

// Returns what this process has written, and its children that it has waited for; 0 where the
// kernel does not count.
uint64_t BytesWritten() {
  const std::string text = base::ReadFile("/proc/self/io").value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    uint64_t bytes = 0;
    if (absl::ConsumePrefix(&line, "wchar: ") && absl::SimpleAtoi(line, &bytes)) return bytes;
  }
  return 0;
}

}  // namespace

bool IsFilledBy(uint64_t written, uint64_t free_before, uint64_t disk, bool is_quota) {
  if (is_quota) return written >= kMuch;
  const uint64_t least = std::clamp<uint64_t>(disk / 64, 4 << 20, kMuch);
  return free_before >= least && written >= free_before / 2;
}

StagedBytes::StagedBytes(const std::filesystem::path& shared_folder, int nodes) : nodes_(nodes) {
  struct statvfs space = {};
  if (shared_folder.empty() || ::statvfs(shared_folder.c_str(), &space) != 0) return;
  free_before_ = uint64_t{space.f_bavail} * space.f_frsize;
  disk_ = uint64_t{space.f_blocks} * space.f_frsize;
  written_before_ = BytesWritten();
}

uint64_t StagedBytes::FilledTheDisk(absl::string_view message) const {
  if (disk_ == 0) return 0;
  const uint64_t written = (BytesWritten() - written_before_) * nodes_;
  const bool is_quota = absl::StrContains(message, "Disk quota exceeded");
  return IsFilledBy(written, free_before_, disk_, is_quota) ? written : 0;
}

}  // namespace tutti::launch
